#include "muster/parallel/run/run_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "muster/core/base/byte_text.h"
#include "muster/core/base/plural.h"
#include "muster/core/data/columns_line.h"
#include "muster/core/nn/fit_remarks.h"
#include "muster/core/nn/step_memory.h"
#include "muster/parallel/run/detail/preparation.h"
#include "muster/parallel/run/detail/run_settings.h"

namespace muster {
namespace {

std::int64_t examplesIn(const std::unique_ptr<DataSetIterator>& data) {
  return data ? data->examples().value_or(0) : 0;
}

std::string dataLine(const PreparedRun& p, std::int64_t batches) {
  return fmt::format("data: {}, {} to train with ({} of {}), {} to validate and {} to test with\n",
                     p.data.title, plural(examplesIn(p.data.train), "example"),
                     plural(batches, "batch", "batches"), p.run.data.batch, examplesIn(p.data.validation),
                     examplesIn(p.data.test));
}

std::string resumptionLine(const ResumedRun& resumed) {
  if (resumed.file.empty()) return {};
  return fmt::format(
      "resumes: {}{}\n", resumed.file.string(),
      resumed.changes.empty() ? "" : fmt::format(", which was trained with {}", resumed.changes));
}

std::string remarkLines(const PreparedRun& p, std::int64_t batches) {
  const auto epochs = std::max<std::int64_t>(p.run.training.epochs - p.network->epoch(), 0);
  auto remarks = fitRemarks(*p.network, epochs, batches, p.run.training.workers);
  remarks.push_back(detail::periodRemark(p.run, batches, p.nodeCount));
  remarks.insert(remarks.end(), p.warnings.begin(), p.warnings.end());
  std::string text;
  for (const auto& remark : remarks)
    if (!remark.empty()) text += fmt::format("note: {}\n", remark);
  return text;
}

/// A line for each device, on which every so many workers have a replica.
std::string memoryLines(const PreparedRun& p) {
  const auto& training = p.run.training;
  std::int64_t state = 0;
  for (const auto* block : p.network->state()) state += static_cast<std::int64_t>(block->values.bytes());
  const auto step = stepBytes(
      *p.network, p.run.data.batch, true,
      {.threads = static_cast<int>(training.threadsPerWorker), .mathMode = detail::mathModeOf(training)});
  std::string text;
  const auto all = std::ssize(p.devices.devices);
  for (std::ptrdiff_t d = 0; d < all; ++d) {
    const Device device = p.devices.devices[static_cast<std::size_t>(d)];
    const std::int64_t workers = training.workers / all + (d < training.workers % all ? 1 : 0);
    text += fmt::format(
        "memory: {}: {} of {} each (parameters, gradients, statistics and the updater's state), {}\n",
        device.toString(), plural(workers, "replica"), byteText(static_cast<double>(state)),
        step && device.isCpu()
            ? fmt::format("and {} for a step of {} (activations, their gradients, packed weights)",
                          byteText(static_cast<double>(*step)), plural(p.run.data.batch, "example"))
            : std::string("and activations, which are not known beforehand"));
  }
  return text;
}

}  // namespace

std::string planText(PreparedRun& p) {
  const std::int64_t batches = p.data.train->batchesPerEpoch().value_or(0);
  const auto wrapper = detail::makeWrapper(p.run, p.devices, p.nodes, *p.network, {}, p.nodeCount);
  const auto line = [](std::string text) { return text.empty() ? text : text + "\n"; };
  return fmt::format("{}{}{}{}\n{}\nplan: {}, {}\n{}{}{}", line(p.data.notice), dataLine(p, batches),
                     line(columnsLine(p.network->inputDescription())), line(classWeightsLine(p.data)),
                     p.network->summary(), wrapper.plan(), plural(p.run.training.epochs, "epoch"),
                     resumptionLine(p.resumed), remarkLines(p, batches), memoryLines(p));
}

}  // namespace muster
