# Our end of the bridge inside Julia: loads a package that has `serve` and `cancel_address`, and
# calls them. Included into a module of our own, never into Main. Nothing here throws: an answer is
# "ok\n..." or "error\nKIND\nMESSAGE\n-----\nTRACE".

const SERVE = Ref{Any}()
const STACK = 256 << 20  # bytes, taken from the system only as far as they are used

"The depot that takes what gets precompiled: the user's first one, or a temporary one before it."
function depot()::String
    folder = joinpath(isempty(DEPOT_PATH) ? "" : first(DEPOT_PATH), "compiled")
    try
        isempty(DEPOT_PATH) ||
            (mkpath(folder); mktemp((_, _) -> nothing, folder); return first(DEPOT_PATH))
    catch
    end
    pushfirst!(DEPOT_PATH, mktempdir())
    first(DEPOT_PATH)
end

"""
The folder into which loading the package writes what only one process at a time may write, or
nothing: Julia guards it itself since 1.10."""
function unguarded(name::String)::String
    writes = depot()
    # a part of the system image
    isloaded = any(id -> id.name == name, keys(Base.loaded_modules))
    VERSION >= v"1.10" || isloaded ? "" :
    joinpath(writes, "compiled", "v$(VERSION.major).$(VERSION.minor)")
end

load(name::String, folder::String)::String =
    answer() do
        # The folder goes to the end, where it is only a place to find the package: in front it
        # would become the active project, which Pkg writes to and on which precompiled files
        # depend.
        folder in LOAD_PATH || push!(LOAD_PATH, folder)
        package = Base.identify_package(name)
        package === nothing && error("no package $name in $folder")
        without_collection(() -> without_display(() -> Base.require(package)))
        loaded = Base.root_module(package)
        SERVE[] = loaded.serve
        string("ok\n", Base.invokelatest(loaded.cancel_address)::UInt64, "\n",
            something(Base.pathof(loaded), folder))
    end

# Julia 1.12 shows on stderr what it precompiles, even where nobody looks. pybridge says it itself.
function without_display(work)
    isdefined(Base, :disable_parallel_precompile) || return work()
    before = Base.disable_parallel_precompile
    set(x) = Core.eval(Base, :(disable_parallel_precompile = $x))
    set(true)
    try
        work()
    finally
        set(before)
    end
end

# A package's image is a hundred megabytes of live objects: walking them all takes a quarter of the
# time in which it is loaded, and finds nothing.
function without_collection(work)
    before = GC.enable(false)
    try
        work()
    finally
        GC.enable(before)
    end
end

serve(message::String)::String = answer(() -> Base.invokelatest(SERVE[], message)::String)

# On a task, for its own large stack: recursion that runs away is then an error and not the end of
# the process, whatever stack the thread has. It also keeps Python's frames out of the stack traces.
function answer(work)::String
    task = Task(() -> guarded(work), STACK)
    yield(task)
    fetch(task)::String
end

function guarded(work)::String
    try
        work()
    catch problem
        Base.invokelatest(failure, problem, catch_backtrace())
    end
end

# Called such that it is not compiled where nothing fails: what shows a stack trace takes half a
# second.
failure(problem, trace)::String =
    string("error\n", nameof(typeof(problem)), "\n", sprint(showerror, problem), "\n-----\n",
        sprint(Base.show_backtrace, trace))
