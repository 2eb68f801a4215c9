#include "muster/core/nn/step/program_cache.h"

#include <algorithm>
#include <utility>

#include "muster/core/base/detail/log_scope.h"
#include "muster/core/base/log.h"

namespace muster::detail {
namespace {

std::unique_ptr<NetworkProgram> compiled(const NetworkPlan& plan, const BatchSize& batch, bool training,
                                         Context& context) {
  if (batch.open == OpenSizes{})
    return std::make_unique<NetworkProgram>(plan, batch.examples, training, context);
  return std::make_unique<NetworkProgram>(withSizes(plan, batch.open), batch.examples, training, context);
}

}  // namespace

ProgramCache::Entry& ProgramCache::get(const NetworkPlan& plan, const BatchSize& batch, bool training,
                                       Context& context) {
  const auto wanted = [&](const Entry& e) { return e.batch == batch && e.training == training; };
  auto found = std::ranges::find_if(entries_, wanted);
  if (found == entries_.end()) {
    if (entries_.size() == kPrograms) {
      const auto oldest = std::ranges::min_element(entries_, {}, &Entry::use);
      for (auto& steps : oldest->runners) steps->finish();
      if (!oldest->runners.empty()) noteRemoval(oldest->batch);
      oldest->runners.clear();  // destroy runners first: `erase` would move the program away before them
      entries_.erase(oldest);
    }
    entries_.push_back(
        {.batch = batch, .training = training, .program = compiled(plan, batch, training, context)});
    found = std::prev(entries_.end());
  }
  found->use = ++uses_;
  return *found;
}

/// After one removal the size may be out of use. A second removal of a size means that sizes alternate.
void ProgramCache::noteRemoval(const BatchSize& batch) {
  if (std::ranges::find(removed_, batch) == removed_.end())
    removed_.push_back(batch);
  else
    warnOnce(fmt::format(
        "network: batches of more than {} sizes take turns; steps of the others are prepared again each time",
        kPrograms));
}

NetworkProgram* ProgramCache::heldSince(std::uint64_t use) const {
  const auto found = std::ranges::find(entries_, use, &Entry::use);
  return found == entries_.end() ? nullptr : found->program.get();
}

StepRunner* ProgramCache::find(Entry& entry, const Batch& batch) {
  auto& runners = entry.runners;
  const auto found = std::ranges::find_if(runners, [&](const auto& steps) { return steps->fits(batch); });
  if (found == runners.end()) return nullptr;
  std::rotate(found, std::next(found), runners.end());
  return runners.back().get();
}

StepRunner& ProgramCache::add(Entry& entry, std::unique_ptr<StepRunner> runner) {
  auto& runners = entry.runners;
  if (runners.size() == kForms) {
    runners.front()->finish();
    runners.erase(runners.begin());
    if (++entry.removed > kForms)  // so many removals mean that forms alternate
      warnOnce(
          fmt::format("network: batches of more than {} forms (masks, element types) take turns; steps of "
                      "the others are prepared again each time",
                      kForms));
  }
  runners.push_back(std::move(runner));
  return *runners.back();
}

bool ProgramCache::complete(std::uint64_t number) const {
  return std::ranges::all_of(entries_, [&](const Entry& e) {
    return std::ranges::all_of(e.runners, [&](const auto& steps) { return steps->complete(number); });
  });
}

void ProgramCache::finish(std::uint64_t number) {
  for (auto& entry : entries_)
    for (auto& steps : entry.runners) steps->finish(number);
}

void ProgramCache::finish() {
  for (auto& entry : entries_)
    for (auto& steps : entry.runners) steps->finish();
}

StepCounts ProgramCache::counts() const {
  StepCounts steps;
  for (const auto& entry : entries_)
    for (const auto& runner : entry.runners) steps += runner->counts();
  return steps;
}

std::size_t ProgramCache::bytes() const {
  std::size_t bytes = 0;
  for (const auto& entry : entries_) bytes += entry.program->bytes();
  return bytes;
}

}  // namespace muster::detail
