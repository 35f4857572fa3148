# Files: whole ones say the same bytes again, and whatever else is in one has a named error.

include("../support/tracing.jl")
using JaxprAD: ArchiveError, SHA, TensorType, read_archive, write_archive, program_text,
    signature_text

const GOLDEN = joinpath(@__DIR__, "..", "..", "..", "tests", "archives")
golden(version) = [joinpath(GOLDEN, version, file) for file in readdir(joinpath(GOLDEN, version))]
in_folder(f) = mktempdir(folder -> f(joinpath(folder, "f.pybridge")))

"The error that reading such a file ends with."
refusal(path, content) =
    (write(path, content); message_of(ArchiveError, () -> read_archive(path)))

"What a file holds, as text."
contents(path) = ((p, s) = read_archive(path); (program_text(p), signature_text(s, 2)))

@testset "files of every version load, and are written alike" begin
    @test length(golden("v1")) == 11
    for (version, path) in [(v, path) for v in 1:2 for path in golden("v$v")]
        in_folder() do again
            save(again, load(path))
            signature = read_archive(path)[2]
            signature === nothing || @test contents(again) == contents(path)
            write_archive(again, read_archive(path)...)
            @test contents(again) == contents(path)
            version == 2 && @test read(again) == read(path)
        end
    end
end

const MODEL = read(joinpath(GOLDEN, "v2", "julia-energy.pybridge"))

@testset "changed, cut and lengthened files" begin
    rng = seeded("changed")
    in_folder() do path
        for _ in 1:300
            changed = copy(MODEL)
            for at in rand(rng, 1:length(changed), rand(rng, 1:3))
                changed[at] = changed[at] ⊻ rand(rng, 0x01:0xff)
            end
            changed == MODEL || @test occursin(path, refusal(path, changed))
            @test occursin(path, refusal(path, MODEL[1:rand(rng, 0:length(MODEL)-1)]))
        end
        @test occursin("damaged", refusal(path, [MODEL; 0x00]))
    end
end

"A file with that text behind a right head."
function with_text(text, data = UInt8[]; version = 2, needs = "0.1.0", mark = MODEL[1:8])
    padding = isempty(data) ? 0 : mod(-(80 + ncodeunits(text)), 64)
    io = IOBuffer()
    needs *= '\0'^(20 - ncodeunits(needs))
    write(io, mark, UInt32(version), needs, UInt64(ncodeunits(text)),
        UInt64(80 + ncodeunits(text) + padding + length(data)))
    head = take!(io)
    [head; SHA.sha256([head; codeunits(text)]); codeunits(text); zeros(UInt8, padding); data]
end

const PROGRAM = "pybridge 1\nprogram f(%0: f32[]) {\n  return %0\n}\n"
const REF = "0"^64
constant(type) =
    "pybridge 1\nprogram f() {\n  %0: $type = constant {ref=\"$REF\"}\n  return %0\n}\n"

@testset "what others may write" begin
    one = "{\"arguments\":[[\"x\",\"position\",\"*\"]],\"result\":[\"y\",\"*\"]}"
    before = "{\"arguments\":[\"*\"],\"keywords\":[],\"result\":\"*\"}"
    in_folder() do path
        write(path, with_text("$one\n$PROGRAM"))
        @test load(path)(2.0) === 2.0f0
        write(path, with_text("$before\n$PROGRAM"; version = 1))
        @test load(path)(2.0) === 2.0f0
        for (content, words) in [
            with_text(PROGRAM; version = 3, needs = "0.9.0") => "takes pybridge 0.9.0 or newer",
            with_text(PROGRAM; version = 3, needs = "") => "takes a newer pybridge",
            with_text(PROGRAM; version = 3, needs = "\e[31m") => "there is no version 3",
            with_text(PROGRAM; version = 0) => "there is no version 0",
            with_text(PROGRAM; mark = "\x89PBA\n\x1a\n ") => "no archive",
            with_text("") => "no description",
            with_text("null") => "expected \"pybridge\"",
            with_text("{}\n$PROGRAM") => "no description of arguments",
            with_text(" null\n$PROGRAM") => "no description of arguments",
            with_text("["^100_000 * "\n" * PROGRAM) => "no description of arguments",
            with_text("{\"arguments\":[],\"result\":[\"y\",\"*\"]}\n$PROGRAM") =>
                "does not fit its Program",
            with_text("$before\n$PROGRAM") => "no description of arguments",
            with_text("$one\n$PROGRAM"; version = 1) => "no description of arguments",
            with_text("null\n" * replace(PROGRAM, "pybridge 1" => "pybridge 2")) =>
                "of version 2",
            with_text("null\n" * replace(PROGRAM, "return %0" => "return %1")) => "%1 is not bound",
            with_text("null\n" * replace(PROGRAM, "return" => "%1: f32[2] = sin %0\n  return")) =>
                "a rank-0 variable is an operand together with arrays",
            with_text("null\n" * constant("f32[35184372088832]")) => "other sizes than",
            with_text("null\n" * constant("f32[<b>]")) => "symbolic shape",
            with_text("null\n" * constant("f32[1]"), zeros(UInt8, 4)) => "another hash",
            with_text("null\n\xff") => "no UTF-8",
            UInt8[] => "no archive",
            MODEL[1:8] => "cut off after 8 bytes",
            MODEL[1:79] => "cut off after 79 bytes",
            MODEL[1:1000] => "cut off after 1000 of $(length(MODEL)) bytes",
        ]
            found = refusal(path, content)
            @test occursin(words, found)
            @test startswith(found, path)
        end
        bools = fill(0x02, 3)
        ref = JaxprAD.constant_hash(TensorType(Bool, [3]), bools)
        text = "null\n" * replace(constant("bool[3]"), REF => ref)
        @test occursin("neither 0 nor 1", refusal(path, with_text(text, bools)))
        @test_throws SystemError load(path * "x")
    end
end

@testset "texts with random mistakes under a right checksum" begin
    rng = seeded("mistakes")
    text = String(MODEL[81:80+Int(reinterpret(UInt64, MODEL[33:40])[1])])
    symbols = collect("0123456789\"{}[]():,\\\n<>-*nulltrue")
    outcomes = in_folder() do path
        map(1:300) do _
            letters = collect(text)
            for _ in 1:rand(rng, 1:3)
                at = rand(rng, 1:min(length(letters), 400))
                kind = rand(rng, 1:3)
                kind == 1 ? (letters[at] = rand(rng, symbols)) :
                kind == 2 ? deleteat!(letters, at) : insert!(letters, at, rand(rng, symbols))
            end
            write(path, with_text(String(letters), MODEL[end-959:end]))
            try
                p, s = read_archive(path)
                write_archive(path, p, s)
                :read
            catch e
                e isa ArchiveError || rethrow()
                :refused
            end
        end
    end
    @test :refused in outcomes
end

@testset "constants in bodies, and bits that numbers do not have" begin
    bits = reinterpret(Float32, UInt32.(0x7fc00000 .+ (1:100)))
    ref = JaxprAD.constant_hash(TensorType(Float32, [100]), collect(reinterpret(UInt8, bits)))
    p = program("""(%0: f32[100]) {
          %1: f32[100] = scan %0 {length=3, reverse=false, consts=0, carry=1,
              unroll=1, body=(%0: f32[100]) {
            %1: f32[100] = constant {ref="$ref"}
            return %1
          }}
          return %1
        }""")
    in_folder() do path
        @test occursin("not at hand", message_of(ArchiveError, () -> save(path, p)))
        write(path, with_text("null\n" * program_text(p), collect(reinterpret(UInt8, bits))))
        f = load(path)
        for g in (f, jit(f))
            @test reinterpret(UInt32, g(zeros(Float32, 100))[1]) == reinterpret(UInt32, bits)
        end
        before = read(path)
        save(path, f)
        again = load(path)
        save(path, again.program)
        @test read(path) == before
    end
end

@testset "a file stays where writing fails" begin
    in_folder() do path
        save(path, load(golden("v1")[1]))
        before = read(path)
        @test_throws ErrorException JaxprAD.replacing(_ -> error("no room"), path)
        @test read(path) == before && readdir(dirname(path)) == [basename(path)]
        link = path * "-link"
        symlink(path, link)
        save(link, load(golden("v1")[2]))
        @test islink(link) && read(path) != before
    end
end
