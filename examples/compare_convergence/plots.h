#pragma once

#include <vector>

#include "examples/compare_convergence/comparison.h"
#include "examples/support/svg_plot.h"

namespace convergence {

/// The line of each arm of a panel, one after the other as `panel.arms` has them; different on light and dark
/// paper, and seen where one lies on another. One worker is grey, synchronous training orange dashes, shared
/// gradients are green ones; averaging goes from blue to red with its frequency, solid, and dash-dotted where
/// it began synchronously.
std::vector<example::LineStyle> stylesOf(const Panel& panel, const Grid& grid);

/// The plots of a panel: accuracy and loss of the merged model by samples, time and bytes, the loss of
/// training, and the replicas' distance. Bands are one standard deviation over the seeds, up and down.
/// Those with nothing to draw are left out.
std::vector<example::Plot> plotsOf(const Panel& panel, const Comparison& comparison);

/// Samples a second by workers on `comparison.link`.
example::Plot linkPlotOf(const Panel& panel, const Comparison& comparison);

}  // namespace convergence
