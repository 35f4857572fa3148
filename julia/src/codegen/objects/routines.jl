# The functions that generated code calls, matrix products and the like, are the same in all
# kernels. Each is compiled once, into an object file with all that it calls, and kernels are linked
# with it.

"The routines that files need, by their symbols: of this process and of what it was compiled for."
const ROUTINES = Dict{String,Specialization}()

"""
The symbols of the routines that are in files of their own; of the others `f(s, text)` gets what
belongs into this file."""
function routines_of(f, ::OutsideTable{Loader}, routines)
    symbols = String[symbol_of(s) for s in routines]
    for (symbol, s) in zip(symbols, routines)
        ROUTINES[symbol] = s
    end
    symbols
end
function routines_of(f, ::OutsideTable{Linker}, routines)
    each_routine_text(f, routines)
    String[]
end

"""
    write_routine(path, symbol)

The object file of a routine that a file written before needs. Throws `NoObjectFile` where its code
refers to what cannot be in a file."""
function write_routine(path::String, symbol::String)
    table, texts = OutsideTable(), String[]
    each_routine_text([ROUTINES[symbol]]) do s, text
        push!(texts, placed_text(s, text, length(texts) + 1, IdDict{Any,String}(), table))
    end
    write_object(ObjectModule(path, texts, Set([symbol]), this_processor()))
end
