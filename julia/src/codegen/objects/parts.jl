# Object files of long code have parts: while threads of libuv's make machine code of some, Julia
# writes the texts of the next. Either takes about as long.

"""
Bytes of LLVM's text from which on there is another part. Machine code of so much takes a tenth of a
second, to begin a part some milliseconds."""
const LONG_PART = 400_000

"""
The object file `path` while its texts are added. Only what is `visible` is seen from outside of it.
`texts` are those of the part that is not begun yet, `writing` the tasks that write others."""
mutable struct PartedFile
    path::String
    visible::Set{String}
    processor::Processor
    maybeparts::Bool
    texts::Vector{String}
    parts::Vector{String}
    writing::Vector{Task}
end
PartedFile(path, visible, processor, maybeparts) =
    PartedFile(path, visible, processor, maybeparts, String[], String[], Task[])

"""
Whether a file may have parts. What a linker gets has one: functions that several files have are in
each. Nor has one that is written while Julia writes an image: a task that has waited for a thread
keeps Julia 1.12 from ending then, and in a system image of Julia 1.5 the function that the thread
runs takes memory of Julia's, which crashes."""
haveparts(::OutsideTable{Loader}) = !iswritingimage()
haveparts(::OutsideTable{Linker}) = false

iswritingimage() = ccall(:jl_generating_output, Cint, ()) == 1
"Whether Julia writes an image of packages. A system image, of an older Julia, is something else."
isprecompiling() = VERSION >= v"1.9" && iswritingimage()

"Adds LLVM's text of a module; the part that is long enough without it is begun to be written."
function add!(file::PartedFile, text::String)
    file.maybeparts && sum(Int[sizeof(t) for t in file.texts]) > LONG_PART && write_aside!(file)
    push!(file.texts, text)
    file
end
function write_aside!(file::PartedFile)
    m = next_part!(file; ispart = true)
    push!(file.writing, @async try
        write_object_aside(m)
    catch e
        e
    end)
    yield()         # to the task, which starts the thread and waits
end

function next_part!(file::PartedFile; ispart)
    name, ending = splitext(file.path)
    path = isempty(file.parts) ? file.path : string(name, '-', length(file.parts), ending)
    m = ObjectModule(path, file.texts, file.visible, file.processor; ispart = ispart)
    file.texts = String[]
    push!(file.parts, path)
    m
end

"Writes the last part. Gives the paths of all."
function finish!(file::PartedFile)
    write_object(next_part!(file; ispart = !isempty(file.writing)))
    for task in file.writing
        problem = fetch(task)
        problem isa Exception && throw(problem)
    end
    file.parts
end

"Waits for what is being written, though it may not matter any more."
stop!(file::PartedFile) = foreach(wait, file.writing)
