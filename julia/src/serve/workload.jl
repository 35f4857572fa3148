# Run while the package precompiles (Julia 1.9 and newer keep the native code), and while an image
# of it is built for older Julias: what a first request needs is then compiled beforehand.

const WORKLOAD = joinpath(@__DIR__, "..", "..", "image", "workload.txt")

function run_workload()
    for p in parse_programs(read(WORKLOAD, String))
        text = program_text(p)
        ones_ = "m" * "1"^length(p.inputs)
        for command in
            ("normalize", "optimize", "jvp $ones_ optimize", "linearize $ones_ optimize",
            "linearize $ones_ optimize compact", "vjp $ones_ 0 optimize")
            answer_to_workload("$command\n$text")
        end
        evaluate_with_ones(optimize(vjp(p)))
        for (k, q) in enumerate((p, gradient_programs(p)...))
            evaluate_with_ones(q)
            answer_to_workload("compile workload_$(p.name)_$k -\n" * program_text(q))
            mktempdir(folder -> write_object_of(q, joinpath(folder, "kernel.o")))
        end
    end
    answer_to_workload("linearize m1 optimize compact\n" * unrolled_loop(100))
    answer_to_workload("rules\n")
end

"Where libLLVM cannot be called, no such file is ever asked for."
function write_object_of(p::Program, path)
    reply = serve("object -\n$path\n" * program_text(p))
    startswith(reply, "ok\n") || occursin("NoObjectFile", reply) ||
        error("the workload failed: $reply")
end

"What a gradient in JAX compiles: the known half and the transpose of the linear one."
function gradient_programs(p::Program)
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
    startswith(reply, "ok\n") || error("the workload failed: $reply")
end

function evaluate_with_ones(p::Program)
    array(t) = ones(t.dtype, reverse(Int.(t.shape))...)
    x, y = [array(aval(v)) for v in p.inputs], [array(aval(a)) for a in p.outputs]
    addresses(arrays) = join((UInt(pointer(a)) for a in arrays), ',')
    GC.@preserve x y answer_to_workload(
        "evaluate $(addresses(x)) $(addresses(y)) -\n" *
        program_text(p)
    )
end

VERSION >= v"1.9" && ccall(:jl_generating_output, Cint, ()) == 1 && run_workload()
