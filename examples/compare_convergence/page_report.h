#pragma once

#include <string>

#include "examples/compare_convergence/comparison.h"

namespace convergence {

/// The document for muster::stillPage: sentences, tables, panels and options.
std::string documentOf(const Comparison& comparison);

/// One HTML file with curves, tables and sentences, that loads no other file; "" if this program was built
/// without the page.
std::string pageReport(const Comparison& comparison);

}  // namespace convergence
