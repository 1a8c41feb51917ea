fn key_of(x: u32) -> u32 { return x; }
