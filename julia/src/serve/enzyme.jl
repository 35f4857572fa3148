# The request about derivatives by Enzyme.
#
# | command | body | answer |
# |---|---|---|
# | `enzyme KEY MODE ACTIVE BATCH AXES REF=ADDRESS,…` | a Program | the derivative's FFI handler. BATCH is the batch's sizes, AXES the axes of it that each operand has, both separated by commas, or `-` |

function answer(::Val{:enzyme}, body, arguments)
    key, mode, active, batch, axes, references = arguments
    p = checked(body)
    numbers = batch == "-" ? Int[] : [parse(Int, n) for n in split(batch, ',')]
    digits =
        batch == "-" ? Iterators.repeated(Bool[]) :
        [Bool[c == '1' for c in m] for m in split(axes, ',')]
    string(
        derived_handler(key, p.name) do
            with_constants(
                () -> Derived(p, mode == "forward" ? ForwardMode() : ReverseMode(),
                    mask(active), numbers, digits), p, addresses_of(references))
        end
    )
end
