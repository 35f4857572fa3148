# Files of Programs, which Python and Julia write and read alike: docs/archive.md has them byte by
# byte, and pybridge/ir/archive.py is their other end. Nothing of a file is ever run, and no more
# memory is taken than the file is long.

const ARCHIVE_MARK = UInt8[0x89, 0x50, 0x42, 0x41, 0x0d, 0x0a, 0x1a, 0x0a]
"That is written; all up to it are read."
const ARCHIVE_VERSION = 2
"The oldest pybridge that reads what this one writes. It stands in the file, for those that do not."
const ARCHIVE_NEEDS = "0.1.0"
const ARCHIVE_ALIGNMENT = 64
const ARCHIVE_HEAD = 48         # bytes
const ARCHIVE_START = 80        # of the text, behind the checksum

const ConstantTypes = Dict{String,TensorType}

# ---- writing

write_archive(path::AbstractString, p::Program, signature) =
    naming(() -> write_contents(path, p, signature), path)
"`f()`, whose errors say which file they are about."
function naming(f, path)
    try
        f()
    catch e
        e isa EOFError && throw(ArchiveError("it is being written by another process", path))
        e isa JaxprADError || rethrow()
        throw(ArchiveError(sprint(showerror, e), path))
    end
end

function write_contents(path, p::Program, signature)
    constants = Dict{String,StoredArray}()
    types = constant_types!(ConstantTypes(), constants, p)
    for ref in keys(types)
        haskey(constants, ref) ||
            refuse("the data of the constant $ref are not at hand")
    end
    text = codeunits(string(signature_text(signature, ARCHIVE_VERSION), "\n", program_text(p)))
    places, size = constant_places(types, length(text))
    head = archive_head(length(text), size)
    replacing(path) do io
        write(io, head, archive_checksum(head, text), text)
        for (ref, place) in places
            write(io, zeros(UInt8, place - Base.position(io)), constants[ref].data)
        end
    end
end

"`f(io)` writes a new file next to `path`, which takes its place in the end."
function replacing(f, path)
    place = ispath(path) ? realpath(path) : abspath(path)       # a link stays one
    unfinished = tempname(dirname(place); cleanup = false)
    try
        open(f, unfinished, "w")
        Base.Filesystem.rename(unfinished, place)
    finally
        rm(unfinished; force = true)
    end
    nothing
end

function archive_head(text, size)
    io = IOBuffer()
    # not by rpad, to which a zero byte has no width since Julia 1.7
    needs = ARCHIVE_NEEDS * '\0'^(20 - ncodeunits(ARCHIVE_NEEDS))
    write(io, ARCHIVE_MARK, htol(UInt32(ARCHIVE_VERSION)), needs, htol(UInt64(text)),
        htol(UInt64(size)))
    take!(io)
end
archive_checksum(head, text) = SHA.sha256(vcat(head, text))

# ---- reading

"The Program in a file, with the data of its constants, and its signature or nothing."
read_archive(path::AbstractString) = naming(() -> open(read_contents, path), path)
refuse(message) = throw(ArchiveError(message, ""))

function read_contents(io)
    head = read(io, ARCHIVE_START)
    version, length, size = archive_lengths(head, filesize(io))
    text = read(io, length)
    head[ARCHIVE_HEAD+1:end] == archive_checksum(head[1:ARCHIVE_HEAD], text) ||
        refuse("it is damaged: its checksum is another")
    isvalid(String, text) || refuse("its text is no UTF-8")
    description, program_text = split_line(String(text))
    signature = read_signature(String(description), version)
    p = one_program(checked_programs(program_text))
    types = constant_types!(ConstantTypes(), Dict{String,StoredArray}(), p)
    places, needed = constant_places(types, length)
    needed == size ||
        refuse("it is damaged: its constants have other sizes than it has room for")
    constants = Dict{String,StoredArray}()
    for (ref, place) in places
        constants[ref] = read_constant(io, place, ref, types[ref])
    end
    check_leaves(p, signature)
    with_data(p, constants), signature
end
"The version, and the bytes of the text and of the file, by its head; `found` is how long it is."
function archive_lengths(head, found)
    head[1:min(end, 8)] == ARCHIVE_MARK || refuse("it is no archive of pybridge")
    if length(head) >= 32
        version = little(UInt32, head, 8)
        1 <= version <= ARCHIVE_VERSION || refuse(other_version(version, head[13:32]))
    end
    length(head) == ARCHIVE_START || refuse("it is cut off after $(length(head)) bytes")
    text, size = little(UInt64, head, 32), little(UInt64, head, 40)
    found < size && refuse("it is cut off after $found of $size bytes")
    found > size && refuse("it is damaged: it has $found bytes, and $size by its head")
    text > size - ARCHIVE_START && refuse("it is damaged: its text is longer than it")
    little(UInt32, head, 8), Int(text), Int(size)
end
little(T, bytes, at) = ltoh(reinterpret(T, bytes[at+1:at+sizeof(T)])[1])

function other_version(version, needs)
    name = String(needs[1:something(findlast(!=(0x00), needs), 0)])
    version == 0 || !occursin(r"^[0-9A-Za-z.+-]*$", name) ?
    "it is damaged: there is no version $version" :
    "it is of version $version, and this JaxprAD reads versions up to $ARCHIVE_VERSION: it takes " *
    (isempty(name) ? "a newer pybridge" : "pybridge $name or newer")
end

function read_constant(io, place, ref, type)
    gap = read(io, place - Base.position(io))
    all(iszero, gap) || refuse("it is damaged: there is something between its constants")
    data = Array{type.dtype}(undef, julia_size(type))
    GC.@preserve data begin
        stored = stored_memory(data)
        read!(io, stored)
        constant_hash(type, stored) == ref ||
            refuse("it is damaged: the data of the constant $ref have another hash")
        type.dtype === Bool && any(b -> b > 0x01, stored) &&
            refuse("the constant $ref has bools that are neither 0 nor 1")
    end
    StoredArray(Symbol(ref), data)
end
stored_memory(data) = unsafe_wrap(Array, Ptr{UInt8}(pointer(data)), sizeof(data))

"The content address of a constant: of its type's text and its elements in memory."
function constant_hash(type::TensorType, stored::Vector{UInt8})
    context = SHA.SHA2_256_CTX()
    SHA.update!(context, Vector{UInt8}(type_text(type)))
    SHA.update!(context, stored)
    bytes2hex(SHA.digest!(context))
end

check_leaves(p::Program, ::Nothing) = nothing
function check_leaves(p::Program, s::Signature)
    total(parts) = mapreduce(leaf_count, +, parts; init = 0)
    total(s.parameters) == length(p.inputs) &&
        total(named_results(s.result)) == length(p.outputs) ||
        refuse("its description of arguments and results does not fit its Program")
end

# ---- constants

"Adds the types of the constants that a Program refers to, and those that are at hand."
function constant_types!(types, constants, p::Program)
    for e in p.equations
        foreach(q -> constant_types!(types, constants, q), bodies(e))
        e.op isa Constant && haskey(e.attrs, :ref) || continue
        ref, type = reference(e[:ref]), aval(e.outputs[1])
        get!(types, ref, type) == type ||
            throw(ProgramTypeError("the constant $ref is of two types"))
        e[:ref] isa StoredArray && (constants[ref] = e[:ref])
    end
    types
end
reference(ref::Symbol) = String(ref)
reference(s::StoredArray) = String(s.ref)

"Where constants begin in the file, in the order of their references, and where the last ends."
function constant_places(types, length)
    places, past = Pair{String,Int}[], ARCHIVE_START + length
    for ref in sort!(collect(keys(types)))
        place = cld(past, ARCHIVE_ALIGNMENT) * ARCHIVE_ALIGNMENT
        push!(places, ref => place)
        past = place + bytes(types[ref])
        # what no file has is not added up further
        past > typemax(Int) ÷ 2 && break
    end
    places, past
end

"The Program whose references have their data."
with_data(p::Program, constants) =
    isempty(constants) ? p :
    with(p; equations = Equation[with_data(e, constants) for e in p.equations])
function with_data(e::Equation, constants)
    e = map_bodies(q -> with_data(q, constants), e)
    e.op isa Constant && haskey(e.attrs, :ref) ?
    with(e; attrs = merge(e.attrs, Attributes(:ref => constants[reference(e[:ref])]))) : e
end
