# Programs into files.

"""
    save(path, traced)
    save(path, program)

Writes what [`trace`](@ref) gives, or a Program, to a file that [`load`](@ref) reads, and
`pybridge.load` in Python. Arrays that the function closes over are constants in it. The file
appears whole or not at all, in the place of one that is there.

Throws an `ArchiveError` for what no file can hold: known values other than integers, Bools and
words.

    julia> path = tempname();

    julia> save(path, trace((x, a) -> a .* x, [1.0, 2.0], 3.0));

    julia> load(path)([1.0, 2.0], 4.0)
    [4.0, 8.0]
"""
save(path::AbstractString, p::Program) = write_archive(path, p, nothing)
save(path::AbstractString, f::LoadedProgram) = write_archive(path, f.program, f.signature)

function save(path::AbstractString, t::TracedFunction)
    n = length(t.captured)
    captured, inputs = t.program.inputs[1:n], t.program.inputs[n+1:end]
    constants = Equation[constant_equation(path, v, x) for (v, x) in zip(captured, t.captured)]
    outputs = Iterators.Stateful(t.program.outputs)
    arguments, given = ordered_tree(path, t.arguments, Iterators.Stateful(inputs), no_result)
    parameters = Parameter[Parameter(name, false, tree)
                           for (name, tree) in zip(t.names, arguments.parts)]
    result, results = ordered_tree(path, t.result, outputs, Literal)
    p = with(t.program; inputs = Vector{Var}(given),
        equations = vcat(constants, t.program.equations), outputs = Vector{Atom}(results))
    write_archive(path, p, Signature(parameters, NamedResult("result", result)))
end

constant_equation(path, v, x) = throw(
    ArchiveError("a function that is traced within another cannot be saved", path))
constant_equation(path, v, x::CapturedArray) =
    Equation(Constant(), Atom[], [v],
        Attributes(:ref => stored_array(aval(v), x.copy), :type => aval(v)), "")
stored_array(type, data) =
    GC.@preserve data StoredArray(Symbol(constant_hash(type, stored_memory(data))), data)

no_result(x) = KnownTree(x)

"""
The tree of a structure and its atoms in the order of the tree, in which keys ascend. What is known
becomes `number(x)`, a tree or a further atom."""
ordered_tree(path, ::NumberLeaf, atoms, number) = LeafTree(), Atom[popfirst!(atoms)]
function ordered_tree(path, s::ArrayLeaf, atoms, number)
    s.axes === nothing || throw(ArchiveError("no file can hold an array whose indices do not " *
                                             "count from 1, but are $(join(s.axes, ", "))", path))
    LeafTree(), Atom[popfirst!(atoms)]
end
function ordered_tree(path, s::StaticValue, atoms, number)
    x = s.value
    x === nothing && return KnownTree(nothing), Atom[]
    if x isa Union{Bool,Int}
        made = number(x)
        return made isa Tree ? (made, Atom[]) : (LeafTree(), Atom[made])
    end
    x isa Union{Symbol,AbstractString} && number === no_result &&
        return KnownTree(String(x)), Atom[]
    throw(ArchiveError("no file can hold a $(typeof(x)), which is known when the function is " *
                       "traced: close over it, as `trace(x -> f(x, v), x)` does over v", path))
end
function ordered_tree(path, s::Container, atoms, number)
    # in the order of the atoms first
    made = Tuple{Tree,Vector{Atom}}[ordered_tree(path, part, atoms, number) for part in s.parts]
    check_keys(path, s.type)
    order = key_order(s.type)
    ordered = order === nothing ? made : made[order]
    trees = Tree[first(m) for m in ordered]
    tree_of(s.type, trees), foldl((all, m) -> append!(all, last(m)), ordered; init = Atom[])
end

check_keys(path, T) = nothing
check_keys(path, d::DictionaryKeys) =
    all(k -> plain_key(k) isa String, d.keys) || all(k -> k isa Int, d.keys) ||
    throw(ArchiveError("a dictionary in a file has words for keys, or integers: not " *
                       join(map(repr, d.keys), ", "), path))

check_keys(path, a::ArrayLike) =
    a.empty isa Vector || throw(ArchiveError(
        "a file can hold vectors of containers, no $(typeof(a.empty).name.wrapper) of them", path))

key_order(T) = nothing
key_order(::Type{<:NamedTuple{names}}) where {names} = sortperm(collect(map(String, names)))
key_order(d::DictionaryKeys) = sortperm(Any[map(plain_key, d.keys)...])
plain_key(k) = k isa Union{Symbol,AbstractString} ? String(k) : k
tree_of(::Type{Tuple}, trees) = GroupTree(:tuple, trees)
tree_of(::ArrayLike, trees) = GroupTree(:list, trees)
tree_of(::Type{<:NamedTuple{names}}, trees) where {names} =
    KeyedTree(sort!(Any[map(String, names)...]), trees)
tree_of(d::DictionaryKeys, trees) = KeyedTree(sort!(Any[map(plain_key, d.keys)...]), trees)
# A struct is to Python a named tuple; what JAX keeps of these is the list of their fields.
function tree_of(T, trees)
    fields = String[map(String, fieldnames(T))...]
    data = bytes2hex(Vector{UInt8}(string("[", join(map(json_string, fields), ", "), "]")))
    RecordTree(String(nameof(T)), fields, data, trees)
end
