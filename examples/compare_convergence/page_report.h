#pragma once

#include <string>

#include "examples/compare_convergence/comparison.h"

namespace convergence {

/// What is beside the curves, as muster::stillPage has it: sentences, tables, panels, options.
std::string documentOf(const Comparison& comparison);

/// One HTML file with curves, tables and sentences, that loads nothing; "" if this program was built without
/// the page.
std::string pageReport(const Comparison& comparison);

}  // namespace convergence
