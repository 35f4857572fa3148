# Derivatives for the rules of other AD systems: ChainRulesCore's, Enzyme's.

"Functions whose derivatives are JaxprAD's, or another language's, within code of other systems."
const RuledFunction = Union{TracedFunction,LoadedProgram,JitFunction,ForeignFunction}

"`jvp(f, x, ẋ)`, compiled where f is."
ruled_jvp(f, x, ẋ) = jvp(f, x, ẋ)
ruled_jvp(j::JitFunction, x, ẋ) =
    derivative!((x, ẋ) -> jvp(j.f, x, ẋ), j, :jvp)(x, ẋ)

"`vjp(f, x...)`, compiled where f is."
ruled_vjp(f, x) = vjp(f, x...)
function ruled_vjp(j::JitFunction, x)
    pull = derivative!((x, ȳ) -> vjp(j.f, x...)[2](ȳ), j, :vjp)
    j(x...), ȳ -> pull(x, ȳ)
end
derivative!(@nospecialize(f), j, mode) = lock(() -> get!(() -> jit(f), j.derivatives, mode), j.lock)
