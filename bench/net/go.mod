module weft/bench/net

go 1.19
