#include "muster/parallel/training/arrival_order.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "muster/core/base/error.h"

namespace muster {

void requireArrivals(const ArrivalPlan& plan, int workers) {
  const auto count = static_cast<std::size_t>(workers);
  require(plan.speeds.size() == count && plan.iterations.size() == count,
          "the strategy's arrivals: {} workers need as many speeds and iterations, got {} and {}", workers,
          plan.speeds.size(), plan.iterations.size());
  for (const double speed : plan.speeds)
    require(std::isfinite(speed) && speed > 0, "the strategy's arrivals: a speed must be above 0, got {}",
            speed);
  for (const std::int64_t iterations : plan.iterations)
    require(iterations >= 1, "the strategy's arrivals: a worker has at least 1 iteration, got {}",
            iterations);
  require(plan.grace >= 0, "the strategy's arrivals: grace must not be negative, got {}", plan.grace);
  require(plan.staleness >= 0, "the strategy's arrivals: staleness must not be negative, got {}",
          plan.staleness);
}

ArrivalOrder::ArrivalOrder(ArrivalPlan plan, const Schedule& learningRate)
    : rule_(std::make_shared<const Rule>(Rule{std::move(plan), learningRate})),
      members_(rule_->plan.speeds.size()),
      arrivals_(members_.size()),
      dealt_(members_.size()) {
  restart(0, 0);
}

void ArrivalOrder::restart(std::int64_t iteration, std::int64_t epoch) {
  iteration_ = iteration;
  epoch_ = epoch;
  std::ranges::fill(members_, Member{});
  batches_ = pending_ = slowest_ = 0;
  opened_ = now_ = 0;
  for (int w = 0; w < static_cast<int>(members_.size()); ++w) depart(w, iteration);
}

int ArrivalOrder::deal() {
  for (;;) {
    const int next = nextRunning([&](std::size_t w) { return members_[w].done; });
    const auto w = static_cast<std::size_t>(next);
    const double time = next < 0 ? now_ : clock(w, members_[w].done);
    if (landsBefore(next, time)) continue;
    now_ = time;  // next >= 0: if no worker runs, the slowest may land
    if (members_[w].done < members_[w].iterations) {
      ++members_[w].done;
      ++batches_;
      return next;
    }
    arrive(members_[w]);
  }
}

void ArrivalOrder::land() {
  for (;;) {
    const int next = nextRunning([&](std::size_t w) { return members_[w].iterations; });
    const auto w = static_cast<std::size_t>(next);
    const double time = next < 0 ? now_ : clock(w, members_[w].iterations);
    if (landsBefore(next, time)) return;
    now_ = time;
    arrive(members_[w]);
  }
}

void ArrivalOrder::landArrived() {
  if (mayLand())
    landNow();
  else
    std::ranges::fill(arrivals_, Arrival{});
}

bool ArrivalOrder::landsBefore(int next, double time) {
  if (!mayLand()) return false;
  const double due = std::max(now_, opened_ + plan().grace);
  if (next >= 0 && due > time) return false;
  if (next >= 0) now_ = due;
  landNow();
  return true;
}

template <typename Done>
int ArrivalOrder::nextRunning(Done done) const {
  int next = -1;
  std::pair<double, bool> earliest;
  for (std::size_t w = 0; w < members_.size(); ++w) {
    if (!members_[w].running) continue;
    const std::pair event(clock(w, done(w)), done(w) < members_[w].iterations);  // arrivals are first
    if (next >= 0 && event >= earliest) continue;
    next = static_cast<int>(w);
    earliest = event;
  }
  return next;
}

std::int64_t ArrivalOrder::begunIterations(std::size_t worker) const {
  const std::int64_t all = members_[worker].iterations;
  if (!members_[worker].running) return all;
  const double about = std::ceil((now_ - members_[worker].begun) * plan().speeds[worker]);
  auto count = static_cast<std::int64_t>(std::clamp(about, 0.0, static_cast<double>(all)));
  while (count > 0 && clock(worker, count - 1) >= now_) --count;  // `about` was rounded
  while (count < all && clock(worker, count) < now_) ++count;
  return count;
}

bool ArrivalOrder::mayLand() const {
  return pending_ > 0 &&
         std::ranges::any_of(members_, [&](const Member& m) { return !m.running && mayGoOn(m); });
}

void ArrivalOrder::arrive(Member& member) {
  if (pending_++ == 0) opened_ = now_;
  member.running = false;
  member.pending = true;
  ++member.arrived;
  slowest_ = std::ranges::min(members_, {}, &Member::arrived).arrived;
}

/// The worker that has arrived first of those that have not landed.
std::size_t ArrivalOrder::firstPending() const {
  std::size_t first = members_.size();
  const auto arrival = [this](std::size_t w) { return clock(w, members_[w].iterations); };
  for (std::size_t w = 0; w < members_.size(); ++w)
    if (members_[w].pending && (first == members_.size() || arrival(w) < arrival(first))) first = w;
  return first;
}

void ArrivalOrder::landNow() {
  const bool together = plan().wallClock || plan().grace > 0 || plan().staleness == 0;
  const std::size_t first = firstPending();
  for (std::size_t w = 0; w < members_.size(); ++w) {
    Member& member = members_[w];
    const std::int64_t begun = begunIterations(w);
    dealt_[w] = begun - std::exchange(member.done, begun);
    batches_ += dealt_[w];
    arrivals_[w].arrives = member.pending && (together || w == first);
    if (!arrivals_[w].arrives) continue;
    member.pending = false;
    --pending_;
  }
  // A worker continues with all the arrivals that it has waited for.
  const auto landed = [](const Member& m) { return m.arrived - (m.pending ? 1 : 0); };
  const std::int64_t slowest = landed(std::ranges::min(members_, {}, landed));
  for (std::size_t w = 0; w < members_.size(); ++w) {
    const Member& member = members_[w];
    arrivals_[w].resumes = !member.running && !member.pending && member.arrived - slowest <= plan().staleness;
  }
  if (plan().wallClock) return;
  const int workers = static_cast<int>(members_.size());
  for (int w = 0; w < workers; ++w)
    if (arrivals_[static_cast<std::size_t>(w)].resumes) depart(w, iteration_ + batches_ / workers);
}

void ArrivalOrder::depart(int worker, std::int64_t iteration) {
  const Departure departure{.worker = worker,
                            .iteration = iteration,
                            .epoch = epoch_,
                            .learningRate = rule_->learningRate.at(iteration, epoch_)};
  Member& member = members_[static_cast<std::size_t>(worker)];
  member.iterations = plan().iterationsFrom ? plan().iterationsFrom(departure)
                                            : plan().iterations[static_cast<std::size_t>(worker)];
  require(member.iterations >= 1, "the strategy's arrivals: a worker has at least 1 iteration, got {}",
          member.iterations);
  member.running = true;
  member.begun = now_;
  member.done = 0;
}

}  // namespace muster
