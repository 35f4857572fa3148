# The tokens of Program text, with positions for error messages.

struct Token
    kind::Symbol            # :var :name :int :float :string :dim :source :punct :end
    text::SubString{String}
    offset::Int             # byte offset in the text, from 1
end

function tokenize(text::String)
    tokens, at = sizehint!(Token[], ncodeunits(text) ÷ 4), next_solid(text, 1)
    while at <= ncodeunits(text)
        kind, from, past, next = scan(text, at)
        kind === :none &&
            throw(syntax_error(text, at, "unexpected character $(repr(text[thisind(text, at)]))"))
        push!(tokens,
            Token(kind,
                SubString(text, from, past > from ? thisind(text, past - 1) : from - 1), at))
        at = next_solid(text, next)
    end
    push!(tokens, Token(:end, SubString(text, 1, 0), ncodeunits(text) + 1))
end

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

function next_solid(text, at)
    while at <= ncodeunits(text) && isspace(text[at])
        at = nextind(text, at)
    end
    at
end

"""
The token at a place: its kind (`:none` if there is none), from where its text goes to before where,
and where the next may begin."""
function scan(text, at)
    c = codeunit(text, at)
    whole(kind, past) = (kind, at, past, past)
    none = whole(:none, at)
    if c == UInt8('#')
        past = past_bytes(!=(UInt8('\n')), text, at + 1)
        (:source, at + 1, past, past)
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
        past = past_bytes(!=(UInt8('>')), text, at + 1)
        past > ncodeunits(text) ? none : (:dim, at + 1, past, past + 1)
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

"-?digits, -?digits.digits with or without an exponent, -inf or -nan."
function scan_number(text, at)
    start = byte(text, at) == UInt8('-') ? at + 1 : at
    past = past_bytes(isdigit_byte, text, start)
    if past == start
        past = past_bytes(isword_byte, text, start)
        return isfloat_word(text, start, past) ? (:float, at, past, past) : (:none, at, at, at)
    end
    fraction = past_bytes(isdigit_byte, text, past + 1)
    byte(text, past) == UInt8('.') && fraction > past + 1 || return (:int, at, past, past)
    byte(text, fraction) == UInt8('e') || return (:float, at, fraction, fraction)
    digits = byte(text, fraction + 1) == UInt8('-') ? fraction + 2 : fraction + 1
    exponent = past_bytes(isdigit_byte, text, digits)
    exponent == digits ? (:float, at, fraction, fraction) : (:float, at, exponent, exponent)
end

"Past the closing quote of the string that begins at `at`; 0 if there is none."
function past_string(text, at)
    at += 1
    while at <= ncodeunits(text)
        c = codeunit(text, at)
        c == UInt8('"') && return at + 1
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
