# The functions that generated code calls, matrix products and the like, are the same in all
# kernels. Each is compiled once, into an object file with all that it calls, and kernels are linked
# with it.

"The routines that files need, by their symbols: of this process and of what it was compiled for."
const ROUTINES = Dict{String,Specialization}()

"""
The symbols of the routines that are in files of their own; those that are not are added to the
texts."""
function routines_of(::OutsideTable{Loader}, texts, routines)
    symbols = String[symbol_of(s) for s in routines]
    for (symbol, s) in zip(symbols, routines)
        ROUTINES[symbol] = s
    end
    symbols
end
function routines_of(::OutsideTable{Linker}, texts, routines)
    append!(texts, routine_texts(routines))
    String[]
end

"""
    write_routine(path, symbol)

The object file of a routine that a file written before needs. Throws `NoObjectFile` where its code
refers to what cannot be in a file."""
function write_routine(path::String, symbol::String)
    texts = routine_texts([ROUTINES[symbol]])
    placed = placed_texts(texts, IdDict{Any,String}(), OutsideTable())
    write_object(path, placed, Set([symbol]), this_processor())
end
