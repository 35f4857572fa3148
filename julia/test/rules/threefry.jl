# Known answers of the reference implementation (Random123, kat_vectors: threefry2x32, 20 rounds).
threefry = "(%0: u32[], %1: u32[], %2: u32[], %3: u32[]) { %4: u32[],
  %5: u32[] = threefry2x32 %0 %1 %2 %3 return %4 %5 }"
check_value(threefry, (x...) -> (0x6b200159, 0x99ba4efe),
    map(fill, (0x00000000, 0x00000000, 0x00000000, 0x00000000))...)
check_value(threefry, (x...) -> (0x1cb996fc, 0xbb002be7),
    map(fill, (0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff))...)
check_value(threefry, (x...) -> (0xc4923a9c, 0x483df7a0),
    map(fill, (0x13198a2e, 0x03707344, 0x243f6a88, 0x85a308d3))...)
check_value("(%0: u32[2]) { %1: u32[2], %2: u32[2] = threefry2x32 0:u32 0:u32 %0 0:u32 return %1
  %2 }", nothing, UInt32[0, 1])
@test refuses("(%0: i32[]) { %1: u32[], %2: u32[] = threefry2x32 %0 %0 %0 %0 return %1 }")
