# Program text -> Program, by recursive descent over the tokens. Nothing in it is ever evaluated.
# pybridge/ir/parser.py refuses the same texts.

const FORMAT_VERSION = 1
# nested Programs and lists, as in Python; deeper text is refused before the stack is
const MAX_NESTING = 100
# with a sign
const MAX_DIGITS = 20
const RESERVED = ("true", "false", "none", "inf", "nan")

mutable struct Parser
    text::String
    tokens::Vector{Token}
    comments::Dict{Int,SubString{String}}
    at::Int
    depth::Int
    places::IdDict{Var,Int}     # where an equation begins, by its first result
end
Parser(text::String) = Parser(text, tokenize(text)..., 1, 0, IdDict{Var,Int}())

peek_token(p::Parser) = p.tokens[p.at]
fail(p::Parser, message, token = peek_token(p)) = throw(syntax_error(p.text, token.offset, message))
describe(t::Token) =
    t.kind === :end ? "the end of the text" : t.kind === :var ? "%$(t.text)" : repr(String(t.text))

function place_text(p::Parser, offset)
    place = syntax_error(p.text, offset, "")
    "line $(place.line), column $(place.column): "
end

function next_token(p::Parser)
    token = peek_token(p)
    token.kind === :end || (p.at += 1)
    token
end
ispunct(t::Token, c) = t.kind === :punct && t.text == c

function expect(p::Parser, kind::Symbol, what)
    token = next_token(p)
    token.kind === kind || fail(p, "expected $what, got $(describe(token))", token)
    token.text
end
function expect_name(p::Parser, what)
    token = peek_token(p)
    found = expect(p, :name, what)
    found in RESERVED ? fail(p, "$found is reserved and cannot be $what", token) : found
end
expect_integer(p::Parser) =
    (token = peek_token(p); expect(p, :int, "an integer"); parse_integer(p, token))
function expect(p::Parser, punct::String)
    token = next_token(p)
    ispunct(token, punct) || fail(p, "expected '$punct', got $(describe(token))", token)
end
function accept(p::Parser, punct::String)
    ispunct(peek_token(p), punct) || return false
    p.at += 1
    true
end
function expect_word(p::Parser, word)
    token = next_token(p)
    token.kind === :name && token.text == word ||
        fail(p, "expected \"$word\", got $(describe(token))", token)
end

"""
    parse_programs(text) -> Vector{Program}

Reads all Programs of a text. Throws `ProgramSyntaxError`, `ProgramVersionError`, or
`ProgramTypeError`."""
parse_programs(text::AbstractString) = parse_programs(parser(text))

"As `parse_programs`, with their types checked: errors say where in the text."
function checked_programs(text::AbstractString)
    p = parser(text)
    place(e) = place_text(p, p.places[e.outputs[1]])
    Program[typecheck(q, place) for q in parse_programs(p)]
end

function parser(text::AbstractString)
    isvalid(String(text)) || throw(ProgramSyntaxError("the text is not valid UTF-8", 1, 1))
    Parser(String(text))
end

function parse_programs(p::Parser)
    expect_word(p, "pybridge")
    version = expect_integer(p)
    version > FORMAT_VERSION &&
        throw(
            ProgramVersionError(
                "the text is a Program of version $version; this JaxprAD reads " *
                "up to version $FORMAT_VERSION: update it"
            )
        )
    version == FORMAT_VERSION || fail(p, "unknown version $version")
    programs = Program[]
    while isempty(programs) || peek_token(p).kind !== :end
        expect_word(p, "program")
        push!(programs, parse_body(p, String(expect_name(p, "the program's name"))))
    end
    programs
end

"Reads a text that holds exactly one Program."
parse_program(text::AbstractString) = one_program(parse_programs(text))
function one_program(programs)
    length(programs) == 1 ||
        throw(ProgramSyntaxError("expected one program, got $(length(programs))", 1, 1))
    programs[1]
end

function bounded_nesting(f, p::Parser)
    (p.depth += 1) > MAX_NESTING && fail(p, "nested too deeply")
    result = f()
    p.depth -= 1
    result
end

const Scope = Dict{Int,Var}

function parse_body(p::Parser, title)
    bounded_nesting(p) do
        scope, inputs, equations = Scope(), Var[], Equation[]
        expect(p, "(")
        if !accept(p, ")")
            push!(inputs, bind!(p, scope))
            while accept(p, ",")
                push!(inputs, bind!(p, scope))
            end
            expect(p, ")")
        end
        expect(p, "{")
        while !(peek_token(p).kind === :name && peek_token(p).text == "return")
            push!(equations, parse_equation(p, scope))
        end
        p.at += 1
        outputs = parse_atoms(p, scope)
        expect(p, "}")
        Program(title, inputs, equations, outputs)
    end
end

function parse_binder(p::Parser)
    token = next_token(p)
    token.kind === :var || fail(p, "expected a variable, got $(describe(token))", token)
    number = parse_integer(p, token)
    length(token.text) < 10 || fail(p, "the variable number $number is too large", token)
    expect(p, ":")
    number, Var(parse_type(p))
end

"Reads a binder into `scope`; what is in `outer` is bound already."
function bind!(p::Parser, scope::Scope, outer::Scope = scope)
    token = peek_token(p)
    number, variable = parse_binder(p)
    haskey(scope, number) || haskey(outer, number) ? fail(p, "%$number is bound twice", token) :
    (scope[number] = variable)
end

function parse_dtype(p::Parser)
    token = next_token(p)
    token.kind === :name && haskey(DTYPE_OF_NAME, Symbol(token.text)) ||
        fail(p, "expected a dtype, got $(describe(token))", token)
    DTYPE_OF_NAME[Symbol(token.text)]
end

function parse_type(p::Parser)
    token, type, dims = peek_token(p), parse_dtype(p), Dim[]
    expect(p, "[")
    if !accept(p, "]")
        push!(dims, parse_size(p))
        while accept(p, ",")
            push!(dims, parse_size(p))
        end
        expect(p, "]")
    end
    try
        TensorType(type, dims)
    catch e
        e isa ProgramTypeError || rethrow()
        throw(ProgramTypeError(place_text(p, token.offset) * e.message))
    end
end

function parse_size(p::Parser)
    token = next_token(p)
    token.kind === :dim && return parse_dim_token(p, token)
    token.kind === :int || fail(p, "expected a dimension, got $(describe(token))", token)
    size = parse_integer(p, token)
    size < 0 ? fail(p, "a dimension cannot be negative", token) : size
end

function parse_dim_token(p::Parser, token)
    dim = try
        parse_dim(token.text)
    catch e
        e isa ArgumentError ? fail(p, e.msg, token) :
        e isa ProgramTypeError ? fail(p, e.message, token) : rethrow()
    end
    dim isa Int ? fail(p, "<$(token.text)> is the number $dim, not a symbolic dimension", token) :
    dim
end

function parse_integer(p::Parser, token::Token)
    value = length(token.text) > MAX_DIGITS ? nothing : tryparse(Int, token.text)
    value === nothing ?
    fail(p, "expected an integer that fits 64 bits, got $(describe(token))", token) : value
end

function parse_equation(p::Parser, scope::Scope)
    token = peek_token(p)
    token.kind === :var ||
        fail(p, "expected an equation or \"return\", got $(describe(token))", token)
    # Results come into scope after the operands are read: an equation cannot use its own results.
    results, outputs = Scope(), Var[]
    while true
        push!(outputs, bind!(p, results, scope))
        accept(p, ",") || break
    end
    expect(p, "=")
    head = peek_token(p)
    title = Symbol(expect_name(p, "a primitive's name"))
    haskey(PRIMITIVES, title) || fail(p, "unknown primitive $title", head)
    op = primitive(title)
    inputs = parse_atoms(p, scope)
    attrs = ispunct(peek_token(p), "{") ? parse_attributes(p, op) : NO_ATTRIBUTES
    isempty(attrs) && !isempty(attributes(op)) &&
        fail(p, "$title needs the attributes $(join(attributes(op), ", "))", head)
    merge!(scope, results)
    p.places[outputs[1]] = token.offset
    source = get(p.comments, p.at - 1, "")
    Equation(op, inputs, outputs,
        declared_attributes(op, attrs, TensorType[aval(v) for v in outputs]), String(strip(source)))
end

function parse_atoms(p::Parser, scope::Scope)
    atoms = Atom[]
    while starts_atom(p)
        push!(atoms, parse_atom(p, scope))
    end
    atoms
end
# A variable before a colon is the next equation's binder.
starts_atom(p::Parser) =
    peek_token(p).kind === :var ? !ispunct(p.tokens[p.at+1], ":") :
    peek_token(p).kind in (:int, :float) || islogical(peek_token(p)) || ispunct(peek_token(p), "(")
islogical(t::Token) = t.kind === :name && t.text in ("true", "false")

function parse_atom(p::Parser, scope::Scope)
    token = next_token(p)
    if token.kind === :var
        number = parse_integer(p, token)
        haskey(scope, number) || fail(p, "%$number is not bound", token)
        return scope[number]
    end
    if ispunct(token, "(")
        re = parse_number(p, next_token(p))
        expect(p, ",")
        im = parse_number(p, next_token(p))
        expect(p, ")")
        expect(p, ":")
        type = parse_dtype(p)
        iscomplex(type) || fail(p, "a complex literal needs a complex dtype", token)
        return Literal(type(parse_float(p, real_dtype(type), re),
            parse_float(p, real_dtype(type), im)))
    end
    expect(p, ":")
    Literal(parse_literal(p, token, parse_dtype(p)))
end

parse_number(p::Parser, token::Token) =
    token.kind === :float ? token :
    fail(p, "expected a float, got $(describe(token))", token)

function parse_literal(p::Parser, token::Token, type::DataType)
    wrong() = fail(p, "$(token.text) is not a $(dtype_name(type))", token)
    if type === Bool
        islogical(token) ? token.text == "true" : wrong()
    elseif type <: Integer
        value = token.kind === :int && length(token.text) <= MAX_DIGITS ?
                tryparse(type, token.text) : nothing
        value === nothing ? wrong() : value
    elseif type <: AbstractFloat
        token.kind === :float ? parse_float(p, type, token) : wrong()
    else
        wrong()
    end
end

function parse_float(p::Parser, ::Type{T}, token::Token) where {T<:Union{Float32,Float64}}
    # Julia 1.5 has no number for what is beyond the largest, later ones an infinite one.
    value = tryparse(T, token.text == "nan" ? "NaN" : token.text)
    value === nothing || isinf(value) && !endswith(token.text, "inf") ?
    fail(p, "$(token.text) is beyond the largest number", token) : value
end
parse_float(p::Parser, ::Type{T}, token::Token) where {T<:Union{Float16,BFloat16}} =
    T(parse_float(p, Float32, token))

function parse_attributes(p::Parser, @nospecialize(op::Primitive))
    attrs = Attributes()
    expect(p, "{")
    while true
        token = peek_token(p)
        key = Symbol(expect_name(p, "an attribute's name"))
        key in attributes(op) || fail(p, "$(name(op)) has no attribute $key", token)
        haskey(attrs, key) && fail(p, "attribute $key is given twice", token)
        expect(p, "=")
        attrs[key] = parse_value(p)
        accept(p, ",") || break
    end
    expect(p, "}")
    for key in required_attributes(op)
        haskey(attrs, key) || fail(p, "$(name(op)) lacks the attribute $key")
    end
    attrs
end

function parse_value(p::Parser)
    token = peek_token(p)
    ispunct(token, "[") && return bounded_nesting(() -> parse_list(p), p)
    ispunct(token, "(") && return parse_body(p, "")
    next_token(p)
    token.kind === :int && return parse_wide_integer(p, token)
    token.kind === :float && return parse_float(p, Float64, token)
    token.kind === :dim && return parse_dim_token(p, token)
    token.kind === :string && return Symbol(unescape(p, token))
    token.kind === :name || fail(p, "expected a value, got $(describe(token))", token)
    token.text == "true" ? true :
    token.text == "false" ? false : token.text == "none" ? nothing :
    Symbol(token.text)
end

# Only values of type u64 reach beyond Int: elements of a constant, a gather's fill value.
function parse_wide_integer(p::Parser, token::Token)
    value = length(token.text) > MAX_DIGITS ? nothing : tryparse(UInt64, token.text)
    value === nothing || value <= typemax(Int) ? parse_integer(p, token) : value
end

function parse_list(p::Parser)
    expect(p, "[")
    values = Any[]
    accept(p, "]") && return Int[]
    push!(values, parse_value(p))
    while accept(p, ",")
        push!(values, parse_value(p))
    end
    expect(p, "]")
    narrowed(values)
end

"A list with the narrowest of the element types that rules expect."
function narrowed(values)
    for T in (Int, Dim, Bool, Float64, Program)
        all(v -> v isa T, values) && return Vector{T}(values)
    end
    all(v -> v isa Union{Int,Float64}, values) ? Vector{Float64}(values) : values
end

const ESCAPES = Dict('n' => '\n', 't' => '\t', 'r' => '\r', 'b' => '\b', 'f' => '\f', '"' => '"',
    '\\' => '\\', '/' => '/')

"The text of a JSON string."
function unescape(p::Parser, token::Token)
    text = SubString(token.text, 2, prevind(token.text, lastindex(token.text)))
    any(c -> c < ' ', text) && fail(p, "a string has a control character", token)
    occursin('\\', text) || return String(text)
    wrong(escape) = fail(p, "unknown escape $escape in a string", token)
    half() = fail(p, "a string has half of a surrogate pair", token)
    io, rest = IOBuffer(), Iterators.Stateful(text)
    function unit()     # after \u
        digits = join(Iterators.take(rest, 4))
        occursin(r"^[0-9a-fA-F]{4}$", digits) || wrong("\\u$digits")
        parse(UInt32, digits; base = 16)
    end
    for c in rest
        c == '\\' || (print(io, c); continue)
        escape = popfirst!(rest)
        if escape == 'u'
            code = unit()
            if 0xd800 <= code < 0xdc00      # the first half of a pair
                join(Iterators.take(rest, 2)) == "\\u" || half()
                low = unit()
                0xdc00 <= low < 0xe000 || half()
                code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00)
            end
            0xdc00 <= code < 0xe000 && half()
            code == 0 && fail(p, "a string has the character 0", token)
            print(io, Char(code))
        else
            print(io, haskey(ESCAPES, escape) ? ESCAPES[escape] : wrong("\\$escape"))
        end
    end
    String(take!(io))
end
