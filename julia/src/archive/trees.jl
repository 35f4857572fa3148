# How arguments and results of a saved Program are grouped, in a form of no language
# (docs/archive.md). pybridge/ir/trees.py writes the same text of the same tree, and reads no other.

"A file that is no archive of a Program, is damaged or too new; or what no archive can hold."
struct ArchiveError <: JaxprADError
    message::String
    path::String
end
Base.showerror(io::IO, e::ArchiveError) =
    print(io, isempty(e.path) ? "" : "$(e.path): ", e.message)

abstract type Tree end
"An array or a number: an input or an output of the Program."
struct LeafTree <: Tree end
"What is no part of the Program's values: nothing, an integer, a Bool or a word."
struct KnownTree <: Tree
    value::Union{Nothing,Bool,Int,String}
end
"A tuple, or with `kind` list a vector of values."
struct GroupTree <: Tree
    kind::Symbol
    parts::Vector{Tree}
end
"A dictionary, or a named tuple. The keys, all words or all integers, ascend."
struct KeyedTree <: Tree
    keys::Vector{Any}
    parts::Vector{Tree}
end
"An object of a class that both ends know by name; the hexadecimal `data` are what no part is."
struct RecordTree <: Tree
    name::String
    fields::Union{Nothing,Vector{String}}
    data::String
    parts::Vector{Tree}
end

subtrees(::Union{LeafTree,KnownTree}) = Tree[]
subtrees(t::Tree) = t.parts
leaf_count(::LeafTree) = 1
leaf_count(t::Tree) = mapreduce(leaf_count, +, subtrees(t); init = 0)
tree_depth(t::Tree) = 1 + mapreduce(tree_depth, max, subtrees(t); init = 0)

# ---- writing

"As deep as trees nest, in pybridge/ir/trees.py too."
const MAX_TREE_DEPTH = 100

list_text(texts) = string("[", join(texts, ","), "]")
pairs_text(t::KeyedTree) =
    list_text(list_text((word_text(k), tree_text(p))) for (k, p) in zip(t.keys, t.parts))
word_text(x::Union{Bool,Int}) = string(x)
word_text(x::String) = json_string(x)

tree_text(::LeafTree) = "\"*\""
tree_text(t::KnownTree) =
    t.value === nothing ? "null" : string("{\"known\":", word_text(t.value), "}")
tree_text(t::GroupTree) = string("{\"", t.kind, "\":", list_text(map(tree_text, t.parts)), "}")
tree_text(t::KeyedTree) = string("{\"dict\":", pairs_text(t), "}")
tree_text(t::RecordTree) =
    string("{\"record\":", json_string(t.name), ",\"fields\":",
        t.fields === nothing ? "null" : list_text(map(json_string, t.fields)), ",\"data\":",
        json_string(t.data), ",\"parts\":", list_text(map(tree_text, t.parts)), "}")

# ---- reading

"Text that is none of a tree."
struct NoSignature <: Exception end

"Objects are pairs, in order."
function json_value(p::Parser, depth)
    depth <= 6MAX_TREE_DEPTH || throw(NoSignature())
    token = peek_token(p)
    ispunct(token, "[") && return json_items(p -> json_value(p, depth + 1), p, "[", "]")
    ispunct(token, "{") && return json_items(p -> json_pair(p, depth + 1), p, "{", "}")
    next_token(p)
    token.kind === :int && return parse_integer(p, token)
    token.kind === :string && return unescape(p, token)
    token.kind === :name && token.text in ("true", "false") && return token.text == "true"
    token.kind === :name && token.text == "null" ? nothing : throw(NoSignature())
end
function json_pair(p::Parser, depth)
    key = json_value(p, depth)
    expect(p, ":")
    key => json_value(p, depth)
end
function json_items(item, p::Parser, opening, closing)
    expect(p, opening)
    items = Any[]
    accept(p, closing) && return items
    push!(items, item(p))
    while accept(p, ",")
        push!(items, item(p))
    end
    expect(p, closing)
    items
end

field_names(form) =
    form isa Vector && all(x -> x isa Pair, form) ? Any[first(x) for x in form] :
    throw(NoSignature())

read_trees(forms, depth) =
    forms isa Vector ? Tree[read_tree(form, depth + 1) for form in forms] : throw(NoSignature())

function read_tree(form, depth)
    depth <= MAX_TREE_DEPTH || throw(NoSignature())
    form == "*" && return LeafTree()
    form === nothing && return KnownTree(nothing)
    names = field_names(form)
    content = map(last, form)
    names == ["known"] && return KnownTree(read_word(content[1]))
    names in (["tuple"], ["list"]) &&
        return GroupTree(Symbol(names[1]), read_trees(content[1], depth))
    names == ["dict"] && return read_keyed(content[1], depth)
    names == ["record", "fields", "data", "parts"] ? read_record(content..., depth) :
    throw(NoSignature())
end

read_word(x::Union{Bool,Int,String}) = x
read_word(x) = throw(NoSignature())

function read_keyed(pairs, depth)
    pairs isa Vector && all(x -> x isa Vector && length(x) == 2, pairs) || throw(NoSignature())
    keys = Any[x[1] for x in pairs]
    all(k -> k isa String, keys) || all(k -> k isa Int, keys) || throw(NoSignature())
    issorted(keys; lt = <=) || throw(NoSignature())
    KeyedTree(keys, read_trees(Any[x[2] for x in pairs], depth))
end

function read_record(name, fields, data, forms, depth)
    inner = read_trees(forms, depth)
    name isa String && data isa String || throw(NoSignature())
    iseven(length(data)) && occursin(r"^[0-9a-f]*$", data) || throw(NoSignature())
    fields === nothing && return RecordTree(name, nothing, data, inner)
    fields isa Vector && length(fields) == length(inner) && all(f -> f isa String, fields) ||
        throw(NoSignature())
    RecordTree(name, Vector{String}(fields), data, inner)
end
