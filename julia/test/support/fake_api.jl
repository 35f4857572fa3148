# XLA's table of functions, made by hand.

using JaxprAD.FFI: FFIApi, FFIApiVersion

# field names -> values of an FFIApi that offers these functions only
fake_api(; functions...) =
    FFIApi(
        (
            haskey(functions, f) ? functions[f] :
            f === :struct_size ? sizeof(FFIApi) :
            f === :version ?
            FFIApiVersion(sizeof(FFIApiVersion), C_NULL, 0, 3) : C_NULL for f in
            fieldnames(FFIApi)
        )...
    )
