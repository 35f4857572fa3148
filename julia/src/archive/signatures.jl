# What a saved Program takes and gives, under the names of the user's function (docs/archive.md):
# pybridge/ir/trees.py writes the same line of the same signature, and reads no other of it.

"An argument; a keyword argument is passed by its name alone."
struct Parameter
    name::String
    keyword::Bool
    tree::Tree
end

"What a call gives: values under a name, or a tuple of results."
abstract type CallResult end
struct NamedResult <: CallResult
    name::String
    tree::Tree
end
struct SeveralResults <: CallResult
    parts::Vector{CallResult}
end

"The arguments, in the order of the Program's inputs, and the result."
struct Signature
    parameters::Vector{Parameter}
    result::CallResult
end

named_results(r::NamedResult) = NamedResult[r]
named_results(r::SeveralResults) =
    foldl((all, part) -> append!(all, named_results(part)), r.parts; init = NamedResult[])
leaf_count(p::Union{Parameter,NamedResult}) = leaf_count(p.tree)

result_depth(::NamedResult) = 0
result_depth(r::SeveralResults) = 1 + mapreduce(result_depth, max, r.parts; init = 0)
function check_depth(s::Signature)
    parts = Any[s.parameters; named_results(s.result)]
    depth = max(result_depth(s.result), mapreduce(p -> tree_depth(p.tree), max, parts; init = 0))
    depth <= MAX_TREE_DEPTH || throw(
        ArchiveError("arguments and results nest at most $MAX_TREE_DEPTH deep in a file", ""))
end

# ---- writing

signature_text(::Nothing, version) = "null"
function signature_text(s::Signature, version)
    check_depth(s)
    version == 1 && return text_of_version_1(s)
    string("{\"arguments\":", list_text(map(parameter_text, s.parameters)), ",\"result\":",
        result_text(s.result), "}")
end
parameter_text(p::Parameter) = list_text(
    (json_string(p.name), p.keyword ? "\"keyword\"" : "\"position\"", tree_text(p.tree)))
result_text(r::NamedResult) = list_text((json_string(r.name), tree_text(r.tree)))
result_text(r::SeveralResults) =
    string("{\"tuple\":", list_text(map(result_text, r.parts)), "}")

function text_of_version_1(s::Signature)
    positional = [p for p in s.parameters if !p.keyword]
    keywords = [p for p in s.parameters if p.keyword]
    string("{\"arguments\":", list_text(tree_text(p.tree) for p in positional),
        ",\"keywords\":",
        list_text(list_text((json_string(p.name), tree_text(p.tree))) for p in keywords),
        ",\"result\":", tree_text(s.result.tree), "}")
end

# ---- reading

"The signature, or nothing, in a line; throws an `ArchiveError` where it is another's text."
function read_signature(text::String, version)
    s = try
        p = Parser(text)
        form = json_value(p, 0)
        peek_token(p).kind === :end || throw(NoSignature())
        form === nothing ? nothing :
        version == 1 ? signature_of_version_1(form) : signature_of(form)
    catch e
        e isa Union{NoSignature,ProgramSyntaxError} || rethrow()
        NoSignature()
    end
    s isa NoSignature || signature_text(s, version) != text ?
    throw(ArchiveError("$(repr(first(text, 40))) is no description of arguments and results", "")) :
    s
end

function signature_of(form)
    field_names(form) == ["arguments", "result"] || throw(NoSignature())
    arguments, result = map(last, form)
    arguments isa Vector || throw(NoSignature())
    parameters = Parameter[read_parameter(form) for form in arguments]
    allunique(p.name for p in parameters) || throw(NoSignature())
    Signature(parameters, read_result(result, 0))
end
function read_parameter(form)
    form isa Vector && length(form) == 3 || throw(NoSignature())
    name, how, tree = form
    how in ("position", "keyword") || throw(NoSignature())
    Parameter(read_name(name), how == "keyword", read_tree(tree, 1))
end
function read_result(form, depth)
    depth <= MAX_TREE_DEPTH && form isa Vector || throw(NoSignature())
    length(form) == 2 && !(form[1] isa Pair) &&
        return NamedResult(read_name(form[1]), read_tree(form[2], 0))
    field_names(form) == ["tuple"] && form[1].second isa Vector || throw(NoSignature())
    SeveralResults(CallResult[read_result(part, depth + 1) for part in form[1].second])
end
read_name(name) = name isa String && !isempty(name) ? name : throw(NoSignature())

"Its arguments have no names, and get the names of variables."
function signature_of_version_1(form)
    field_names(form) == ["arguments", "keywords", "result"] || throw(NoSignature())
    arguments, keywords, result = map(last, form)
    trees, keyed = read_trees(arguments, 0), read_keyed(keywords, 0)
    all(k -> k isa String, keyed.keys) || throw(NoSignature())
    names = free_names(["x$(k - 1)" for k in eachindex(trees)], keyed.keys)
    parameters = Parameter[Parameter(name, false, t) for (name, t) in zip(names, trees)]
    append!(parameters, Parameter(k, true, t) for (k, t) in zip(keyed.keys, keyed.parts))
    Signature(parameters, NamedResult("result", read_tree(result, 0)))
end

"The names, with a number behind each that is taken."
function free_names(wishes, taken)
    known = Set{String}(taken)
    map(wishes) do wish
        name, count = wish, 2
        while name in known
            name, count = "$(wish)_$count", count + 1
        end
        push!(known, name)
        name
    end
end

# ---- names of inputs and results

"A name for each leaf, with its path in what Julia's values are grouped in."
leaf_names(name, ::LeafTree) = [name]
leaf_names(name, ::KnownTree) = String[]
leaf_names(name, t::Tree) = String[
    leaf for (part, tree) in zip(part_names(t), t.parts) for leaf in leaf_names("$name$part", tree)
]
input_names(s::Signature) =
    String[leaf for p in s.parameters for leaf in leaf_names(p.name, p.tree)]
output_names(s::Signature) =
    String[leaf for r in named_results(s.result) for leaf in leaf_names(r.name, r.tree)]
