// version: which weft this is, for programs that are to build with several.
//
// Design: three numbers, as Semantic Versioning has them, and one to compare. Below 1.0 another
// minor version may break what was built with this one.
//
// Limits: they are those of the header. The build has them from here, and so do the packages.
//
//   #if WEFT_VERSION < 200
//   #error "this program needs weft 0.2"
//   #endif
#pragma once

#define WEFT_VERSION_MAJOR 0
#define WEFT_VERSION_MINOR 2
#define WEFT_VERSION_PATCH 0
#define WEFT_VERSION (WEFT_VERSION_MAJOR * 10000 + WEFT_VERSION_MINOR * 100 + WEFT_VERSION_PATCH)
