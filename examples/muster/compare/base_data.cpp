#include "examples/muster/compare/base_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <thread>

#include "muster/core/base/log.h"
#include "muster/core/base/number_text.h"
#include "muster/datasets/source/detail/example_hashes.h"
#include "muster/parallel/run/detail/preparation.h"
#include "muster/parallel/run/prepared_run.h"

namespace comparing {
namespace {

constexpr double kHeldOut = 0.15;  // of the examples, for a part that the run file does not have

/// Whether a run needs validation data.
bool needsValidation(const muster::RunFile& run, const muster::ComparisonGrid& grid) {
  return !grid.tune.empty() || run.listeners.earlyStopping || run.listeners.reduceOnPlateau;
}

}  // namespace

std::string counted(std::int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", muster::groupedNumber(static_cast<double>(count)), noun,
                     count == 1 ? "" : "s");
}

std::int64_t examplesIn(const std::unique_ptr<muster::DataSetIterator>& data) {
  return data ? data->examples().value_or(0) : 0;
}

muster::LoadedData loadData(const BaseRun& base) {
  auto run = base.run();
  run.data.shuffle = run.data.dropLast = false;
  return muster::loadData(run.data, muster::PlacementWish::Host, std::array{muster::Device::cpu()}, 1,
                          muster::detail::knownBy(run, {}));
}

muster::LoadedData loadAgain(const std::function<muster::LoadedData()>& load) {
  struct OnlyErrors {
    OnlyErrors() {
      muster::setLogSink([sink = before, loader = std::this_thread::get_id()](muster::LogLevel level,
                                                                              std::string_view text) {
        // Other threads have other things to say, such as that the program was interrupted.
        if (level < muster::LogLevel::Error && std::this_thread::get_id() == loader) return;
        if (sink)
          sink(level, text);
        else
          muster::printLogLine(level, text);
      });
    }
    ~OnlyErrors() { muster::setLogSink(before); }
    muster::LogSink before = muster::setLogSink({});
  } onlyErrors;
  return load();
}

std::string holdOut(BaseRun& base, const muster::ComparisonGrid& grid, muster::LoadedData& data) {
  const auto run = base.run();
  const bool test = !data.test, validation = !data.validation && needsValidation(run, grid);
  const auto all = examplesIn(data.train) + examplesIn(data.validation);
  const auto part = std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(all) * kHeldOut));
  if (test) base.set(fmt::format("data.testExamples={}", part));
  if (validation) base.set(fmt::format("data.validationExamples={}", part));
  if (!test && !validation) return "";
  data = loadAgain([&] { return loadData(base); });
  const auto drawn = counted(part, muster::detail::nounOf(run.data));
  return fmt::format("The run file has no {}, so {} of {} {} held out {} (data.{}).",
                     test && validation ? "test and no validation data"
                     : test             ? "test data"
                                        : "validation data",
                     test && validation ? drawn + " each" : drawn,
                     muster::groupedNumber(static_cast<double>(all)), part == 1 ? "is" : "are",
                     test && validation ? "to test and to validate with"
                     : test             ? "to test with"
                                        : "to validate with",
                     test && validation ? "testExamples, data.validationExamples"
                     : test             ? "testExamples"
                                        : "validationExamples");
}

std::string contentsOf(const muster::LoadedData& data) {
  const auto text = data.description.toJson() + data.contents.toJson();
  return fmt::format("{:016x}", muster::detail::hashOf(std::as_bytes(std::span(text))));
}

}  // namespace comparing
