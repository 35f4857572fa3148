# Pieces of one array that are put together again, as one slice. Such are arrays that a loop writes
# piece by piece, once `reroll_loops` has made a scan of it: it stacks what the trips give.

"""
    merge_pieces(program) -> Program

The same Program, in which a concatenation of rows of memory that are, but for their shape,
successive slices of one array along its first axis takes these as one slice."""
function merge_pieces(p::Program)
    producer, b = IdDict{Var,Equation}(), Builder()
    for e in p.equations
        check_cancelled()
        b.source = e.source
        inputs =
            name(e.op) === :concatenate && isflat(e) ? merged_pieces!(b, e, producer) : e.inputs
        push!(b.equations, with(e; inputs = inputs))
        foreach(v -> producer[v] = e, e.outputs)
    end
    dce(with(p; equations = b.equations))
end
isflat(e::Equation) = ndims(aval(e.outputs[1])) == 1

"Slices `from` … `to - 1` of an array along its first axis."
struct Pieces
    array::Var
    from::Int
    to::Int
end

function merged_pieces!(b::Builder, e::Equation, producer)
    found, k = Atom[], 1
    while k <= length(e.inputs)
        first_, last_ = pieces_of(e.inputs[k], producer), k
        run_ = first_
        while run_ !== nothing && last_ < length(e.inputs)
            next = pieces_of(e.inputs[last_+1], producer)
            next !== nothing && next.array === run_.array && next.from == run_.to || break
            run_, last_ = Pieces(run_.array, run_.from, next.to), last_ + 1
        end
        push!(found, last_ == k ? e.inputs[k] : written_out!(b, run_))
        k = last_ + 1
    end
    found
end

"What an array is of another, seen through changes of its shape, or nothing."
function pieces_of(a::Atom, producer)
    e = get(producer, a, nothing)
    while e !== nothing && name(e.op) in (:reshape, :squeeze)
        e = get(producer, e.inputs[1], nothing)
    end
    e !== nothing && name(e.op) === :slice && isfirst_slice(e) || return nothing
    Pieces(e.inputs[1], e[:start][1], e[:limit][1])
end
isfirst_slice(e::Equation) =
    all(d -> d isa Int, e[:limit]) && all(==(1), e[:strides]) &&
    all(==(0), e[:start][2:end]) && e[:limit][2:end] == shape(e.inputs[1])[2:end]

function written_out!(b::Builder, x::Pieces)
    rest = shape(x.array)[2:end]
    y = emit(b, :slice, x.array; start = vcat(x.from, zeros(Int, length(rest))),
        limit = vcat(x.to, rest), strides = ones(Int, length(rest) + 1))
    isempty(rest) ? y : emit(b, :reshape, y; shape = Dim[size_of(shape(y))])
end
