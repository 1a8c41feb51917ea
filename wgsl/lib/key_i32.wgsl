fn key_of(x: i32) -> u32 { return bitcast<u32>(x) ^ 0x80000000u; }
