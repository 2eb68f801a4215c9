#include "examples/muster/compare/grid_progress.h"

#include <fmt/format.h>

#include <algorithm>

#include "muster/core/listeners/progress_text.h"

namespace comparing {

std::string gridBar(const GridState& state, int columns) {
  const auto width = static_cast<std::size_t>(std::max(columns, 0));
  const auto bar = muster::meter(state.share, 22);
  const auto counts =
      fmt::format("run {}/{} {:>3}%", state.run, state.runs, static_cast<int>(state.share * 100));
  const auto left =
      state.secondsLeft ? fmt::format("  {} left", muster::durationText(*state.secondsLeft)) : "";
  for (const auto& text : {fmt::format("{} {} {}{}", counts, bar, state.name, left),
                           fmt::format("{} {}{}", counts, bar, left), counts + left})
    if (text.size() <= width) return text;
  return counts.substr(0, width);
}

GridProgress::GridProgress(GridProgressOptions options)
    : options_(std::move(options)), bar_(options_.terminal), shareAtStart_(share(0)), begin_(bar_.now()) {}

double GridProgress::share(std::int64_t samples) const {
  const double ofRun = static_cast<double>(samples) / static_cast<double>(options_.samplesPerRun);
  return (static_cast<double>(options_.finished) + ofRun) / static_cast<double>(options_.runs);
}

std::optional<double> GridProgress::secondsLeft(double share) const {
  if (share <= shareAtStart_) return std::nullopt;
  const double elapsed = std::chrono::duration<double>(bar_.now() - begin_).count();
  return elapsed * (1 - share) / (share - shareAtStart_);
}

void GridProgress::begin(const std::string& name) {
  name_ = name;
  draw(share(0));
}

void GridProgress::advance(std::int64_t samples) {
  if (bar_.due()) draw(share(samples));
}

void GridProgress::draw(double share) {
  const GridState state{.run = options_.finished + 1,
                        .runs = options_.runs,
                        .name = name_,
                        .share = share,
                        .secondsLeft = secondsLeft(share)};
  bar_.show([&](int columns) { return gridBar(state, columns); }, "");
}

void GridProgress::finish(const std::string& line) {
  ++options_.finished;
  const auto left = secondsLeft(share(0));
  const auto rest = left && options_.finished < options_.runs
                        ? fmt::format("; {} left", muster::durationText(*left))
                        : std::string();
  bar_.print(fmt::format("run {}/{}: {}{}", options_.finished, options_.runs, line, rest));
}

}  // namespace comparing
