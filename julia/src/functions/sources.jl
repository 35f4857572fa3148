# Where functions come from. Code and files are evaluated once for their content, each in
# a module of its own.

"The name of the file that code given as text is said to be from."
const CODE_FILE = "source of julia_function"
const MODULES = Dict{String,Module}()
"Julia objects that Python handed over; kept as long as the process lives, since XLA may call them."
const OBJECTS = Any[]

"Takes a Julia object from juliacall and gives the number by which requests name it."
keep(object) = (push!(OBJECTS, object); length(OBJECTS))

"The module in which a function's name is looked up."
function home(kind::AbstractString, word::AbstractString, digest::AbstractString,
    code::AbstractString)
    kind in ("main", "object") && return Main
    kind == "package" && return package(word)
    get!(MODULES, digest) do
        m = Module(gensym("PyBridgeSource"))
        Core.eval(m, :(eval(x) = Core.eval($m, x)))
        Core.eval(m, :(include(path::AbstractString) = Base.include($m, path)))
        # SOURCE_PATH is where the file's own `include`s start from
        kind == "file" ?
        task_local_storage(() -> include_string(m, code, String(word)), :SOURCE_PATH,
            String(word)) :
        include_string(m, code, CODE_FILE)
        m
    end
end

function package(name)
    words = split(name, '.')
    id = Base.identify_package(String(words[1]))
    id === nothing && throw(
        FunctionNotFound(
            string("the Julia package ", words[1],
                " is not installed in this environment; in Julia: import Pkg; Pkg.add(\"",
                words[1],
                "\")")
        )
    )
    Base.require(id)
    foldl((m, word) -> getfield(m, Symbol(word)), words[2:end]; init = Base.root_module(id))
end

"The value of a name, which may have dots."
function named(m::Module, name::AbstractString, place::AbstractString)
    value = m
    for word in split(name, '.')
        value isa Module && isdefined(value, Symbol(word)) ||
            throw(FunctionNotFound("there is no $name in $place"))
        value = getfield(value, Symbol(word))
    end
    value
end
