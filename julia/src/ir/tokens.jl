# The tokens of Program text, with positions for error messages.

struct Token
    kind::Symbol            # :var :name :int :float :string :dim :punct :end
    text::SubString{String}
    offset::Int             # byte offset in the text, from 1
end

"""
The tokens of a text, and the comments that follow a token on its line, by the token's number: those
of equations' last tokens are sources."""
function tokenize(text::String)
    tokens, comments = sizehint!(Token[], ncodeunits(text) ÷ 4), Dict{Int,SubString{String}}()
    at = past = next_solid(text, 1)
    while at <= ncodeunits(text)
        kind, from, to, next = token_from(text, at)
        kind === :none &&
            throw(syntax_error(text, at, "unexpected character $(repr(text[thisind(text, at)]))"))
        found = SubString(text, from, to > from ? thisind(text, to - 1) : from - 1)
        if kind !== :comment
            push!(tokens, Token(kind, found, at))
        elseif !has_newline(text, past, at)
            comments[length(tokens)] = found
        end
        past, at = next, next_solid(text, next)
    end
    push!(tokens, Token(:end, SubString(text, 1, 0), ncodeunits(text) + 1)), comments
end
has_newline(text, from, to) = past_bytes(!=(UInt8('\n')), text, from) < to

# Texts have millions of bytes, and a match of a regular expression is an object of half a kilobyte:
# bytes are looked at one by one.

byte(text, at) = at <= ncodeunits(text) ? codeunit(text, at) : 0x00
isdigit_byte(c) = UInt8('0') <= c <= UInt8('9')
isletter_byte(c) = UInt8('a') <= c <= UInt8('z') || UInt8('A') <= c <= UInt8('Z') || c == UInt8('_')
isword_byte(c) = isletter_byte(c) || isdigit_byte(c)

"The first place from `at` on whose byte is not `accepted`."
function past_bytes(accepted, text, at)
    while at <= ncodeunits(text) && accepted(codeunit(text, at))
        at += 1
    end
    at
end

isspace_byte(c) = c in (UInt8(' '), UInt8('\t'), UInt8('\r'), UInt8('\n'))
next_solid(text, at) = past_bytes(isspace_byte, text, at)

"""
The token at a place: its kind (`:none` if there is none), from where its text goes to before where,
and where the next may begin."""
function token_from(text, at)
    c = codeunit(text, at)
    whole(kind, past) = (kind, at, past, past)
    none = whole(:none, at)
    if c == UInt8('#')
        past = past_bytes(!=(UInt8('\n')), text, at + 1)
        (:comment, at + 1, past, past)
    elseif c == UInt8('%')
        past = past_bytes(isdigit_byte, text, at + 1)
        past > at + 1 ? (:var, at + 1, past, past) : none
    elseif isdigit_byte(c) || c == UInt8('-')
        scan_number(text, at)
    elseif isletter_byte(c)
        past = past_bytes(isword_byte, text, at)
        whole(isfloat_word(text, at, past) ? :float : :name, past)
    elseif c == UInt8('"')
        past = past_string(text, at)
        past == 0 ? none : whole(:string, past)
    elseif c == UInt8('<')
        past = past_bytes(c -> c != UInt8('>') && c != UInt8('\n'), text, at + 1)
        byte(text, past) == UInt8('>') ? (:dim, at + 1, past, past + 1) : none
    else
        Char(c) in "[](){},:=" ? whole(:punct, at + 1) : none
    end
end

function isfloat_word(text, at, past)
    letters =
        past == at + 3 ?
        (codeunit(text, at), codeunit(text, at + 1), codeunit(text, at + 2)) : (0x00,
            0x00, 0x00)
    letters == (UInt8('i'), UInt8('n'), UInt8('f')) ||
        letters == (UInt8('n'), UInt8('a'), UInt8('n'))
end

"-?digits, with or without a fraction, with or without an exponent; -inf."
function scan_number(text, at)
    start = byte(text, at) == UInt8('-') ? at + 1 : at
    past = past_bytes(isdigit_byte, text, start)
    if past == start
        past = past_bytes(isword_byte, text, start)
        infinite = isfloat_word(text, start, past) && codeunit(text, start) == UInt8('i')
        return infinite ? (:float, at, past, past) : (:none, at, at, at)
    end
    fraction = past_bytes(isdigit_byte, text, past + 1)
    if byte(text, past) == UInt8('.') && fraction > past + 1
        past = past_exponent(text, fraction)
        return :float, at, past, past
    end
    exponent = past_exponent(text, past)
    exponent > past ? (:float, at, exponent, exponent) : (:int, at, past, past)
end

"Past an exponent that begins at `at`; `at` itself if none does."
function past_exponent(text, at)
    byte(text, at) in (UInt8('e'), UInt8('E')) || return at
    digits = byte(text, at + 1) in (UInt8('-'), UInt8('+')) ? at + 2 : at + 1
    past = past_bytes(isdigit_byte, text, digits)
    past > digits ? past : at
end

"Past the closing quote of the string that begins at `at`; 0 if there is none."
function past_string(text, at)
    at += 1
    while at <= ncodeunits(text)
        c = codeunit(text, at)
        c == UInt8('"') && return at + 1
        c == UInt8('\n') && return 0
        c == UInt8('\\') && byte(text, at + 1) in (0x00, UInt8('\n')) && return 0
        at += c == UInt8('\\') ? 2 : 1
    end
    0
end

function syntax_error(text::String, offset::Int, message)
    before = SubString(text, 1, offset > 1 ? prevind(text, min(offset, ncodeunits(text) + 1)) : 0)
    line = count(==('\n'), before) + 1
    start = something(findlast(==('\n'), before), 0)
    ProgramSyntaxError(message, line,
        length(
            SubString(
                before,
                start + 1 <= ncodeunits(before) ? nextind(before, start) :
                ncodeunits(before) + 1
            )
        ) + 1)
end

"The first line of a text, and the rest."
function split_line(text)
    newline = findfirst(==('\n'), text)
    newline === nothing ? (text, "") :
    (SubString(text, 1, prevind(text, newline)), SubString(text, nextind(text, newline)))
end
