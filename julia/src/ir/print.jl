# Program -> text, in the canonical form of docs/program.md.

"The text of one or several Programs."
program_text(programs::Program...) = sprint(write_programs, programs)

function write_programs(io, programs)
    println(io, "pybridge ", FORMAT_VERSION)
    for p in programs
        print(io, "program ", isempty(p.name) ? "main" : p.name)
        write_body(io, p, 0)
        println(io)
    end
end

"The text with names of inputs and results in comments, which are no part of what is canonical."
function named_program_text(p::Program, inputs, outputs)
    lines = split(program_text(p), '\n')        # the last is empty
    isempty(outputs) || (lines[end-2] *= "  # $(join(outputs, ", "))")
    names = comment_lines(["%$(k - 1) $name" for (k, name) in enumerate(inputs)])
    join([lines[1:2]; names; lines[3:end]], '\n')
end

const COMMENT_WIDTH = 100
"The words with commas between, in lines of a width that can be read."
function comment_lines(words)
    lines = String[]
    for word in words
        if !isempty(lines) && length(lines[end]) + length(word) < COMMENT_WIDTH
            lines[end] *= ", $word"
        else
            isempty(lines) || (lines[end] *= ",")
            push!(lines, "  # $word")
        end
    end
    lines
end

Base.show(io::IO, ::MIME"text/plain", p::Program) = print(io, program_text(p))

const Numbers = IdDict{Var,Int}

indent(io, level) =
    for _ in 1:level
        print(io, "  ")
    end

function write_body(io, p::Program, level)
    numbers = Numbers()
    print(io, "(")
    write_binders(io, p.inputs, numbers)
    println(io, ") {")
    for e in p.equations
        indent(io, level + 1)
        write_equation(io, e, numbers, level + 1)
        println(io)
    end
    indent(io, level + 1)
    print(io, "return")
    for a in p.outputs
        print(io, " ")
        write_atom(io, a, numbers)
    end
    println(io)
    indent(io, level)
    print(io, "}")
end

function write_binders(io, vars, numbers)
    for (i, v) in enumerate(vars)
        i > 1 && print(io, ", ")
        numbers[v] = length(numbers)
        print(io, "%", numbers[v], ": ")
        write_type(io, v.type)
    end
end

function write_type(io, t::TensorType)
    print(io, dtype_name(t.dtype), "[")
    for (i, d) in enumerate(t.shape)
        i > 1 && print(io, ",")
        print(io, d)
    end
    print(io, "]")
end

function write_equation(io, e::Equation, numbers, level)
    # Operands are looked up before the results are numbered: an equation cannot
    # use its own results.
    foreach(a -> check_bound(a, numbers), e.inputs)
    write_binders(io, e.outputs, numbers)
    print(io, " = ", name(e.op))
    for a in e.inputs
        print(io, " ")
        write_atom(io, a, numbers)
    end
    write_attributes(io, e, level)
    isempty(e.source) || print(io, "  # ", e.source)
end

function write_attributes(io, e::Equation, level)
    isempty(e.attrs) && return
    keys = [k for k in attributes(e.op) if haskey(e.attrs, k)]
    isempty(keys) && return
    print(io, " {")
    for (i, key) in enumerate(keys)
        i > 1 && print(io, ", ")
        print(io, key, "=")
        write_value(io, e.attrs[key], level)
    end
    print(io, "}")
end

check_bound(::Literal, numbers) = nothing
check_bound(v::Var, numbers) =
    haskey(numbers, v) ||
    throw(ProgramTypeError("a variable of type $(type_text(v.type)) is used before it is bound"))

function write_atom(io, v::Var, numbers)
    check_bound(v, numbers)
    print(io, "%", numbers[v])
end
write_atom(io, l::Literal, numbers) =
    print(io, number_text(l.value), ":", dtype_name(typeof(l.value)))

write_value(io, p::Program, level) = write_body(io, p, level)
write_value(io, x::Union{Bool,Integer}, level) = print(io, x)
write_value(io, x::AbstractFloat, level) = print(io, number_text(Float64(x)))
write_value(io, d::DimExpr, level) = print(io, "<", d.text, ">")
write_value(io, ::Nothing, level) = print(io, "none")
function write_value(io, list::AbstractVector, level)
    print(io, "[")
    for (i, v) in enumerate(list)
        i > 1 && print(io, ", ")
        write_value(io, v, level)
    end
    print(io, "]")
end
write_value(io, s::StoredArray, level) = write_value(io, s.ref, level)
function write_value(io, s::Union{Symbol,AbstractString}, level)
    word = String(s)
    bare =
        occursin(r"^[A-Za-z_][A-Za-z0-9_]*$", word) &&
        !(word in ("true", "false", "none", "inf", "nan"))
    print(io, bare ? word : json_string(word))
end

function json_string(s)
    io = IOBuffer()
    print(io, '"')
    for c in s
        c == '"' ? print(io, "\\\"") :
        c == '\\' ? print(io, "\\\\") :
        c == '\n' ? print(io, "\\n") :
        c == '\r' ? print(io, "\\r") :
        c == '\t' ? print(io, "\\t") :
        c == '\b' ? print(io, "\\b") :
        c == '\f' ? print(io, "\\f") :
        c < ' ' ? print(io, "\\u", string(UInt16(c); base = 16, pad = 4)) : print(io, c)
    end
    print(io, '"')
    String(take!(io))
end

number_text(x::Union{Bool,Integer}) = string(x)
number_text(z::Complex) = string("(", number_text(real(z)), ",", number_text(imag(z)), ")")
number_text(x::Union{Float16,BFloat16}) = number_text(Float32(x))

"The shortest decimal that reads back as x, positional for decimal exponents in -5 … 15."
function number_text(x::Union{Float32,Float64})
    isnan(x) && return "nan"
    isinf(x) && return x > 0 ? "inf" : "-inf"
    sign = signbit(x) ? "-" : ""
    iszero(x) && return sign * "0.0"
    digits, exponent = shortest_digits(abs(x))
    n = length(digits)
    if -5 <= exponent <= 15
        exponent < 0 && return string(sign, "0.", "0"^(-exponent - 1), digits)
        whole = exponent + 1
        n <= whole && return string(sign, digits, "0"^(whole - n), ".0")
        return string(sign, digits[1:whole], ".", digits[whole+1:end])
    end
    string(sign, digits[1], ".", n == 1 ? "0" : digits[2:end], "e", exponent)
end

"The significant digits of x > 0 without trailing zeros, and the decimal exponent of the first."
function shortest_digits(x)
    mantissa, e =
        occursin('e', string(x)) ? split(string(x), 'e') :
        occursin('f', string(x)) ? split(string(x), 'f') : (string(x), "0")
    whole, fraction = split(mantissa, '.')
    digits = string(whole, fraction)
    leading = something(findfirst(!=('0'), digits))
    exponent = parse(Int, e) + length(whole) - leading
    String(rstrip(digits[leading:end], '0')), exponent
end
