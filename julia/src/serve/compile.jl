# The requests that make a Program an FFI target, and that tell what the compiler does with it.

function answer(::Val{:compile}, body, arguments)
    p = checked(body)
    made = FFI.target(arguments[1], p) do
        with_constants(() -> compile(p), p, addresses_of(arguments[2]))
    end
    string(UInt(made.handler), " ", made.workspace)
end

function answer(::Val{:explain}, body, arguments)
    p = checked(body)
    with_constants(() -> explain(p), p, addresses_of(arguments[1]))
end
