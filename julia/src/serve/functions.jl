# The requests about Julia functions.
#
# | command | body | answer |
# |---|---|---|
# | `function_result` | a description | the tree of what the function returns, from one call on arguments of ones |
# | `function_trace` | a description | `keep` where the answer depends on the description alone, else `-`; the tree of what the function returns; a line with the type and the bytes of each array that the Program takes before the arguments; an empty line and the Program |
# | `function_make NAME` | a description | a runner's number, and its FFI handler's address (0 before Julia 1.9) |
# | `function_backends` | | the backends of ADTypes that this Julia has, a line each |
# | `function_run NUMBER IN,… OUT,…` | | runs it on the memory at these addresses |

"The description, its source loaded: what that defines can be used only by a later call."
function read_description(body)
    d = Functions.Description(body)
    Functions.home(d)
    d
end

function answer(::Val{:function_result}, body, arguments)
    d = read_description(body)
    Functions.tree_text(Base.invokelatest(Functions.inferred_result, d))
end

function answer(::Val{:function_make}, body, arguments)
    number = Base.invokelatest(Functions.make_runner, read_description(body))
    address =
        Functions.ADOPTS_THREADS ?
        Functions.handler(Functions.RUNNERS[number], arguments[1]) : UInt(0)
    string(number, " ", address)
end

answer(::Val{:function_backends}, body, arguments) =
    join(Functions.available_backends(), '\n')

function answer(::Val{:function_run}, body, arguments)
    addresses(text) = [parse(UInt, a) for a in split(text, ','; keepempty = false) if a != "-"]
    Base.invokelatest(Functions.run_numbered!, parse(Int, arguments[1]), addresses(arguments[2]),
        addresses(arguments[3]))
    ""
end

function answer(::Val{:function_trace}, body, arguments)
    d = read_description(body)
    t = Base.invokelatest(trace, d)::DescribedTrace
    head = [Functions.selfcontained(d) ? "keep" : "-"; Functions.tree_text(t.result);
        map(captured_line, t.captured)]
    string(join(head, '\n'), "\n\n", program_text(optimize(t.program)))
end
captured_line(x::Array) =
    string(type_text(leaf_type(x)), " ", bytes2hex(reinterpret(UInt8, vec(x))))
