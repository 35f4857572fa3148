# Program text -> Program, by recursive descent over the tokens. Nothing in it is ever evaluated.

const FORMAT_VERSION = 1
# nested Programs and lists, as in Python; deeper text is refused before the stack is
const MAX_NESTING = 100

mutable struct Parser
    text::String
    tokens::Vector{Token}
    at::Int
    depth::Int
end

peek_token(p::Parser) = p.tokens[p.at]
fail(p::Parser, message, token = peek_token(p)) = throw(syntax_error(p.text, token.offset, message))
describe(t::Token) =
    t.kind === :end ? "the end of the text" : t.kind === :var ? "%$(t.text)" : repr(String(t.text))

"Moves past comments that stand where no equation ended."
skip_comments(p::Parser) =
    while peek_token(p).kind === :source
        p.at += 1
    end

function next_token(p::Parser)
    skip_comments(p)
    token = peek_token(p)
    token.kind === :end || (p.at += 1)
    token
end
function upcoming(p::Parser)
    skip_comments(p)
    peek_token(p)
end
ispunct(t::Token, c) = t.kind === :punct && t.text == c

function expect(p::Parser, kind::Symbol, what)
    token = next_token(p)
    token.kind === kind || fail(p, "expected $what, got $(describe(token))", token)
    token.text
end
function expect(p::Parser, punct::String)
    token = next_token(p)
    ispunct(token, punct) || fail(p, "expected '$punct', got $(describe(token))", token)
end
function accept(p::Parser, punct::String)
    ispunct(upcoming(p), punct) || return false
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
function parse_programs(text::AbstractString)
    isvalid(String(text)) || throw(ProgramSyntaxError("the text is not valid UTF-8", 1, 1))
    p = Parser(String(text), tokenize(String(text)), 1, 0)
    expect_word(p, "pybridge")
    version = parse_integer(p, next_token(p))
    version > FORMAT_VERSION &&
        throw(
            ProgramVersionError(
                "the text is a Program of version $version; this JaxprAD reads " *
                "up to version $FORMAT_VERSION: update it"
            )
        )
    version == FORMAT_VERSION || fail(p, "unknown version $version")
    programs = Program[]
    while isempty(programs) || upcoming(p).kind !== :end
        expect_word(p, "program")
        title = expect(p, :name, "the program's name")
        push!(programs, parse_body(p, String(title)))
    end
    programs
end

"Reads a text that holds exactly one Program."
function parse_program(text::AbstractString)
    programs = parse_programs(text)
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
            push!(inputs, parse_input(p, scope))
            while accept(p, ",")
                push!(inputs, parse_input(p, scope))
            end
            expect(p, ")")
        end
        expect(p, "{")
        while !(upcoming(p).kind === :name && upcoming(p).text == "return")
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
    expect(p, ":")
    number, Var(parse_type(p))
end

function parse_input(p::Parser, scope::Scope)
    token = upcoming(p)
    number, variable = parse_binder(p)
    haskey(scope, number) && fail(p, "%$number is bound twice", token)
    scope[number] = variable
end

function parse_dtype(p::Parser)
    token = next_token(p)
    token.kind === :name && haskey(DTYPE_OF_NAME, Symbol(token.text)) ||
        fail(p, "expected a dtype, got $(describe(token))", token)
    DTYPE_OF_NAME[Symbol(token.text)]
end

function parse_type(p::Parser)
    type = parse_dtype(p)
    dims = Dim[]
    expect(p, "[")
    accept(p, "]") && return TensorType(type, dims)
    push!(dims, parse_size(p))
    while accept(p, ",")
        push!(dims, parse_size(p))
    end
    expect(p, "]")
    TensorType(type, dims)
end

function parse_size(p::Parser)
    token = next_token(p)
    token.kind === :dim && return parse_dim_token(p, token)
    token.kind === :int || fail(p, "expected a dimension, got $(describe(token))", token)
    size = parse_integer(p, token)
    size < 0 ? fail(p, "a dimension cannot be negative", token) : size
end

parse_dim_token(p::Parser, token) =
    try
        parse_dim(token.text)
    catch e
        e isa ArgumentError || rethrow()
        fail(p, e.msg, token)
    end

function parse_integer(p::Parser, token::Token)
    value = tryparse(Int, token.text)
    value === nothing ?
    fail(p, "expected an integer that fits 64 bits, got $(describe(token))", token) : value
end

function parse_equation(p::Parser, scope::Scope)
    token = upcoming(p)
    token.kind === :var ||
        fail(p, "expected an equation or \"return\", got $(describe(token))", token)
    # Results come into scope after the operands are read: an equation cannot use its own results.
    numbers, outputs = Int[], Var[]
    while true
        binder = upcoming(p)
        number, variable = parse_binder(p)
        number in numbers || haskey(scope, number) ? fail(p, "%$number is bound twice",
            binder) : push!(numbers, number)
        push!(outputs, variable)
        accept(p, ",") || break
    end
    expect(p, "=")
    head = upcoming(p)
    title = Symbol(expect(p, :name, "a primitive's name"))
    haskey(PRIMITIVES, title) || fail(p, "unknown primitive $title", head)
    op = primitive(title)
    inputs = parse_atoms(p, scope)
    attrs = ispunct(upcoming_same_line(p), "{") ? parse_attributes(p, op) : NO_ATTRIBUTES
    isempty(attrs) && !isempty(attributes(op)) &&
        fail(p, "$title needs the attributes $(join(attributes(op), ", "))", head)
    source = parse_source(p)
    foreach((n, v) -> scope[n] = v, numbers, outputs)
    Equation(op, inputs, outputs,
        declared_attributes(op, attrs, TensorType[aval(v) for v in outputs]), source)
end

upcoming_same_line(p::Parser) =
    peek_token(p).kind === :source ? Token(:none, SubString(p.text, 1, 0), 1) : peek_token(p)

function parse_source(p::Parser)
    token, previous = peek_token(p), p.tokens[p.at-1]
    token.kind === :source || return ""
    occursin('\n', SubString(p.text, previous.offset, token.offset)) && return ""
    p.at += 1
    String(strip(token.text))
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
        return Literal(type(parse_float(real_dtype(type), re), parse_float(real_dtype(type), im)))
    end
    expect(p, ":")
    Literal(parse_literal(p, token, parse_dtype(p)))
end

parse_number(p::Parser, token::Token) =
    token.kind in (:int, :float) ? token :
    fail(p, "expected a number, got $(describe(token))", token)

function parse_literal(p::Parser, token::Token, type::DataType)
    wrong() = fail(p, "$(token.text) is not a $(dtype_name(type))", token)
    if type === Bool
        islogical(token) ? token.text == "true" : wrong()
    elseif type <: Integer
        value = token.kind === :int ? tryparse(type, token.text) : nothing
        value === nothing ? wrong() : value
    elseif type <: AbstractFloat
        token.kind in (:int, :float) ? parse_float(type, token) : wrong()
    else
        wrong()
    end
end

parse_float(::Type{T}, token::Token) where {T<:Union{Float32,Float64}} =
    parse(T, replace(token.text, "nan" => "NaN"))
parse_float(::Type{T}, token::Token) where {T<:Union{Float16,BFloat16}} =
    T(parse_float(Float32, token))

function parse_attributes(p::Parser, @nospecialize(op::Primitive))
    attrs = Attributes()
    expect(p, "{")
    while true
        token = upcoming(p)
        key = Symbol(expect(p, :name, "an attribute's name"))
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
    token = upcoming(p)
    ispunct(token, "[") && return bounded_nesting(() -> parse_list(p), p)
    ispunct(token, "(") && return parse_body(p, "")
    next_token(p)
    token.kind === :int && return parse_wide_integer(p, token)
    token.kind === :float && return parse_float(Float64, token)
    token.kind === :dim && return parse_dim_token(p, token)
    token.kind === :string && return Symbol(unescape(p, token))
    token.kind === :name || fail(p, "expected a value, got $(describe(token))", token)
    token.text == "true" ? true :
    token.text == "false" ? false : token.text == "none" ? nothing :
    Symbol(token.text)
end

# Only values of type u64 reach beyond Int: elements of a constant, a gather's fill value.
function parse_wide_integer(p::Parser, token::Token)
    value = tryparse(UInt64, token.text)
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

const ESCAPES = Dict('n' => "\n", 't' => "\t", 'r' => "\r", 'b' => "\b", 'f' => "\f", '"' => "\"",
    '\\' => "\\", '/' => "/")

function unescape(p::Parser, token::Token)
    text = SubString(token.text, 2, prevind(token.text, lastindex(token.text)))
    occursin('\\', text) || return text
    function unescape(s)
        s[2] == 'u' && length(s) == 6 && return string(Char(parse(UInt32, s[3:6]; base = 16)))
        haskey(ESCAPES, s[2]) ? ESCAPES[s[2]] : fail(p, "unknown escape $s in a string", token)
    end
    replace(text, r"\\(u[0-9a-fA-F]{4}|.)"s => unescape)
end
