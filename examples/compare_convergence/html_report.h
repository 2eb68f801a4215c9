#pragma once

#include <string>

#include "examples/compare_convergence/comparison.h"

namespace convergence {

/// The comparison as one HTML page that needs nothing else: tables, plots as SVG, what was assumed. Also
/// well-formed XML.
std::string htmlReport(const Comparison& comparison);

}  // namespace convergence
