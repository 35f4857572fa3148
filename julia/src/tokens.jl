# The tokens of Program text, with positions for error messages.

struct Token
    kind::Symbol            # :var :name :int :float :string :dim :source :punct :end
    text::SubString{String}
    offset::Int             # byte offset in the text, from 1
end

# \G, the place where matching starts, keeps the match anchored and PCRE's compiled matcher in use.
const TOKEN = r"""\G(?:
    (?<space>\s+)
  | \#(?<source>[^\n]*)
  | %(?<var>[0-9]+)
  | (?<float>-?(?:[0-9]+\.[0-9]+(?:e-?[0-9]+)?|inf\b|nan\b))
  | (?<int>-?[0-9]+)
  | (?<name>[A-Za-z_][A-Za-z0-9_]*)
  | (?<string>"(?:[^"\\]|\\.)*")
  | <(?<dim>[^>]*)>
  | (?<punct>[][(){},:=])
)"""x
const TOKEN_KINDS = (:source, :var, :float, :int, :name, :string, :dim, :punct)

function tokenize(text::String)
    tokens, at = Token[], 1
    while at <= ncodeunits(text)
        m = match(TOKEN, text, at)
        m === nothing && throw(syntax_error(text, at, "unexpected character $(repr(text[thisind(text, at)]))"))
        if m[:space] === nothing
            kind = TOKEN_KINDS[findfirst(k -> m[k] !== nothing, TOKEN_KINDS)]
            push!(tokens, Token(kind, m[kind], at))
        end
        at += ncodeunits(m.match)
    end
    push!(tokens, Token(:end, SubString(text, 1, 0), ncodeunits(text) + 1))
end

function syntax_error(text::String, offset::Int, message)
    before = SubString(text, 1, offset > 1 ? prevind(text, min(offset, ncodeunits(text) + 1)) : 0)
    line = count(==('\n'), before) + 1
    start = something(findlast(==('\n'), before), 0)
    ProgramSyntaxError(message, line, length(SubString(before, start + 1 <= ncodeunits(before) ? nextind(before, start) : ncodeunits(before) + 1)) + 1)
end
