# The request that makes a Program an FFI target.

function answer(::Val{:compile}, body, arguments)
    p = checked(body)
    made = FFI.target(arguments[1], p) do
        with_constants(() -> compile(p), p, addresses_of(arguments[2]))
    end
    string(UInt(made.handler), " ", made.workspace)
end
