# Run while the package precompiles (Julia 1.9 and newer keep the native code), and while an image
# of it is built for older Julias: what a first request needs is then compiled beforehand.

const WORKLOAD = joinpath(@__DIR__, "..", "..", "image", "workload.txt")
"Many kinds of models: an image is compiled for them too, for which precompilation has no time."
const MODELS = joinpath(@__DIR__, "..", "..", "image", "models.txt")

function run_workload(files...)
    programs = [p for file in files for p in parse_programs(read(file, String))]
    for p in programs
        text, every_input = program_text(p), "m" * join(map(Int, inexact(p.inputs)))
        answer_to_workload("jvp $every_input optimize\n$text")
        answer_to_workload("linearize $every_input optimize compact\n$text")
        answer_to_workload("with_gradient $every_input\n$text")
        for q in (p, gradient_programs(p)...)
            answer_with_file("object -", program_text(q))
        end
    end
    # They stay known, so that a cache which is prepared later has them compiled.
    isempty(ROUTINES) || answer_with_file("routine_object", minimum(keys(ROUTINES)))
    answer_with_file("host_object", "")
    answer_to_workload("compile workload -\n" * program_text(first(programs)))
    answer_to_workload("linearize m1 optimize compact\n" * unrolled_loop(100))
end

"Where libLLVM cannot be called, no such file is ever asked for, nor one that is refused."
function answer_with_file(command, text)
    reply = mktempdir() do folder
        serve("$command\n$(joinpath(folder, "made.o"))$(isempty(text) ? "" : "\n" * text)")
    end
    startswith(reply, "ok\n") || occursin(r"NoObjectFile|KernelRefused", reply) ||
        error("the workload failed: $reply")
end

"""
What a gradient in JAX compiles: the number with its gradient, or of another Program the known half
and the transpose of the linear one."""
function gradient_programs(p::Program)
    numbers = [isscalar(v) for v in p.outputs if isinexact(dtype(v))]
    whole = numbers == [true] ? with_gradient(p, inexact(p.inputs)) : nothing
    whole === nothing || return (whole,)
    l = linearized(p, inexact(p.inputs); compact = true, optimized = true)
    linear = [k > l.residuals && isinexact(dtype(v)) for (k, v) in enumerate(l.linear.inputs)]
    l.known, optimize(transpose(l.linear, linear))
end

"The product of p² - p³ - p over the elements p, long enough to be rolled."
function unrolled_loop(trips)
    p = build("unrolled", [TensorType(Float32, Dim[trips])]) do b, v
        Atom[foldl(1:trips; init = Literal(1.0f0)) do x, k
            p = emit(b, :squeeze,
                emit(b, :slice, v[1]; start = [k - 1], limit = [k], strides = [1]);
                dims = [0])
            emit(b, :mul, x,
                emit(b, :sub,
                    emit(b, :sub, emit(b, :integer_pow, p; y = 2),
                        emit(b, :integer_pow, p; y = 3)), p))
        end]
    end
    program_text(p)
end

function answer_to_workload(message)
    reply = serve(message)
    startswith(reply, "ok\n") || occursin("KernelRefused", reply) ||
        error("the workload failed: $reply")
end

"""
Runs the workload such that an image of the package keeps all that is compiled for it. Without the
tag, which Julia 1.12 brought, it keeps of Base's functions only those which inference met on the
way from the package's, and none that was called by dispatch."""
function precompile_workload()
    tagged = VERSION >= v"1.12-"
    tagged && ccall(:jl_tag_newly_inferred_enable, Cvoid, ())
    run_workload(WORKLOAD)
    tagged && ccall(:jl_tag_newly_inferred_disable, Cvoid, ())
end

isprecompiling() && precompile_workload()
