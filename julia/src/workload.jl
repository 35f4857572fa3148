# Run while the package precompiles (Julia 1.9 and newer keep the native code), and while an image of it is built for older Julias: what a
# first request needs is then compiled beforehand.

const WORKLOAD = joinpath(@__DIR__, "..", "image", "workload.txt")

function run_workload()
    for p in parse_programs(read(WORKLOAD, String))
        text = program_text(p)
        ones_ = "m" * "1"^length(p.inputs)
        for command in ("normalize", "optimize", "jvp $ones_ optimize", "linearize $ones_ optimize", "vjp $ones_ 0 optimize")
            answer_to_workload("$command\n$text")
        end
        derivative = optimize(vjp(p))
        for (k, q) in enumerate((p, derivative))
            evaluate_with_ones(q)
            answer_to_workload("compile workload_$(p.name)_$k -\n" * program_text(q))
        end
    end
    answer_to_workload("rules\n")
end

function answer_to_workload(message)
    reply = serve(message)
    startswith(reply, "ok\n") || error("the workload failed: $reply")
end

function evaluate_with_ones(p::Program)
    array(t) = ones(t.dtype, reverse(Int.(t.shape))...)
    x, y = [array(aval(v)) for v in p.inputs], [array(aval(a)) for a in p.outputs]
    addresses(arrays) = join((UInt(pointer(a)) for a in arrays), ',')
    GC.@preserve x y answer_to_workload("evaluate $(addresses(x)) $(addresses(y)) -\n" * program_text(p))
end

VERSION >= v"1.9" && ccall(:jl_generating_output, Cint, ()) == 1 && run_workload()
