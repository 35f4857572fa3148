# Descriptions of arguments and results: one text for each, in Python and here.

include("../support/tracing.jl")
using JaxprAD: ArchiveError, read_signature, signature_text

described(tree) = "{\"arguments\":[$tree],\"keywords\":[],\"result\":\"*\"}"

const ONE = "[\"x\",\"position\",\"*\"]"
named(tree) = "{\"arguments\":[[\"x\",\"position\",$tree]],\"result\":[\"y\",\"*\"]}"

@testset "a description reads back" begin
    for tree in ["\"*\"", "null", "{\"known\":-9223372036854775808}", "{\"known\":true}",
        "{\"known\":\"\\\"\\\\\\n\\u0001ß\"}", "{\"tuple\":[]}", "{\"list\":[\"*\",null]}",
        "{\"dict\":[]}", "{\"dict\":[[-1,\"*\"],[2,{\"dict\":[[\"a\",\"*\"],[\"ß\",null]]}]]}",
        "{\"record\":\"R\",\"fields\":null,\"data\":\"00ff\",\"parts\":[\"*\"]}",
        "{\"record\":\"R\",\"fields\":[\"a\"],\"data\":\"\",\"parts\":[\"*\"]}",
        "{\"tuple\":["^99 * "\"*\"" * "]}"^99]
        @test signature_text(read_signature(described(tree), 1), 1) == described(tree)
        @test signature_text(read_signature(named(tree), 2), 2) == named(tree)
    end
    for version in 1:2
        @test read_signature("null", version) === nothing
        @test signature_text(nothing, version) == "null"
    end
    for result in ["{\"tuple\":[]}", "{\"tuple\":[[\"y\",\"*\"],{\"tuple\":[[\"y\",null]]}]}",
        "{\"tuple\":["^99 * "[\"y\",\"*\"]" * "]}"^99]
        line = "{\"arguments\":[[\"ß\",\"keyword\",\"*\"],[\"x\",\"position\",null]]," *
               "\"result\":$result}"
        @test signature_text(read_signature(line, 2), 2) == line
    end
end

# Those of tests/ir/test_archive.py.
const NO_TREES = [
    "0", "1.5", "NaN", "\"x\"", "[]", "{}", "{\"tuple\":0}", "{\"tuple\":[\"*\"],\"list\":[]}",
    "{\"tuple\":[\"*\"], \"a\":1}", "{\"known\":null}", "{\"known\":1.0}", "{\"known\":[]}",
    "{\"known\":9223372036854775808}", "{\"known\":\"\\ud800\"}",
    "{\"dict\":[[\"b\",\"*\"],[\"a\",\"*\"]]}", "{\"dict\":[[\"a\",\"*\"],[\"a\",\"*\"]]}",
    "{\"dict\":[[\"a\",\"*\"],[1,\"*\"]]}", "{\"dict\":[[true,\"*\"]]}", "{\"dict\":[[\"a\"]]}",
    "{\"dict\":[\"ab\"]}", "{\"dict\":{\"a\":\"*\"}}", "{\"dict\":[[null,\"*\"]]}",
    "{\"record\":\"R\",\"fields\":3,\"data\":\"\",\"parts\":[\"*\"]}",
    "{\"record\":\"R\",\"fields\":{\"a\":1},\"data\":\"\",\"parts\":[\"*\"]}",
    "{\"record\":\"R\",\"fields\":[\"a\",\"b\"],\"data\":\"\",\"parts\":[\"*\"]}",
    "{\"record\":\"R\",\"fields\":[\"a\"],\"data\":\"0\",\"parts\":[\"*\"]}",
    "{\"record\":\"R\",\"fields\":[\"a\"],\"data\":\"AB\",\"parts\":[\"*\"]}",
    "{\"record\":\"R\",\"fields\":[\"a\"],\"data\":\"0 0\",\"parts\":[\"*\"]}",
    "{\"record\":1,\"fields\":[\"a\"],\"data\":\"\",\"parts\":[\"*\"]}",
    "{\"tuple\":["^101 * "\"*\"" * "]}"^101,
]

@testset "no description: $(first(line, 60))" for line in [
    " null"; "0"; "[]"; "\"*\""; "true"; "{\"arguments\":[\"*\"],\"result\":\"*\"}";
    "{\"arguments\":0,\"keywords\":0,\"result\":0}"; described("\"*\"") * " ";
    "{\"keywords\":[],\"arguments\":[\"*\"],\"result\":\"*\"}";
    "{\"arguments\":[\"*\"],\"keywords\":[[1,\"*\"]],\"result\":\"*\"}";
    map(described, NO_TREES)
]
    @test_throws ArchiveError read_signature(line, 1)
end

@testset "no description of version 2: $(first(line, 60))" for line in [
    described("\"*\""); "{\"arguments\":0,\"result\":[\"y\",\"*\"]}";
    "{\"arguments\":{\"x\":1},\"result\":[\"y\",\"*\"]}"; "{\"arguments\":[$ONE],\"result\":\"*\"}";
    "{\"arguments\":[$ONE],\"result\":[\"*\"]}"; "{\"arguments\":[$ONE],\"result\":[\"\",\"*\"]}";
    "{\"arguments\":[$ONE],\"result\":[1,\"*\"]}";
    "{\"arguments\":[$ONE],\"result\":{\"list\":[]}}";
    "{\"arguments\":[$ONE],\"result\":{\"tuple\":[\"y\",\"*\"]}}";
    "{\"arguments\":[$ONE], \"result\":[\"y\",\"*\"]}";
    "{\"result\":[\"y\",\"*\"],\"arguments\":[$ONE]}";
    "{\"arguments\":[$ONE,$ONE],\"result\":[\"y\",\"*\"]}";
    "{\"arguments\":[\"*\"],\"result\":[\"y\",\"*\"]}";
    "{\"arguments\":[[\"x\",\"*\"]],\"result\":[\"y\",\"*\"]}";
    "{\"arguments\":[[\"x\",false,\"*\"]],\"result\":[\"y\",\"*\"]}";
    "{\"arguments\":[[\"x\",[\"keyword\"],\"*\"]],\"result\":[\"y\",\"*\"]}";
    "{\"arguments\":[[\"\",\"position\",\"*\"]],\"result\":[\"y\",\"*\"]}";
    "{\"arguments\":[[null,\"position\",\"*\"]],\"result\":[\"y\",\"*\"]}";
    "{\"arguments\":[$ONE],\"result\":[\"y\",\"*\"],\"more\":1}";
    "{\"arguments\":[],\"result\":" * "{\"tuple\":["^101 * "[\"y\",\"*\"]" * "]}"^101 * "}";
    map(named, NO_TREES)
]
    @test_throws ArchiveError read_signature(line, 2)
end
