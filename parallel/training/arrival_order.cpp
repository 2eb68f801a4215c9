#include "muster/parallel/training/arrival_order.h"

#include <algorithm>
#include <utility>

namespace muster {

ArrivalOrder::ArrivalOrder(ArrivalPlan plan)
    : plan_(std::move(plan)),
      members_(plan_.speeds.size()),
      arrivals_(members_.size()),
      dealt_(members_.size()) {}

void ArrivalOrder::restart() {
  std::ranges::fill(members_, Member{});
  pending_ = slowest_ = 0;
  opened_ = now_ = 0;
}

int ArrivalOrder::deal() {
  int worker = kLanded;
  while (worker == kLanded) worker = advance();
  return worker;
}

void ArrivalOrder::land() {
  std::ranges::fill(dealt_, 0);
  for (int worker = advance(); worker != kLanded; worker = advance())
    ++dealt_[static_cast<std::size_t>(worker)];
}

int ArrivalOrder::advance() {
  for (;;) {
    const int next = nextRunning();
    const auto at = static_cast<std::size_t>(next);
    const double due = std::max(now_, opened_ + plan_.grace);
    if (mayLand() && (next < 0 || due <= clock(members_[at], at))) {
      if (next >= 0) now_ = due;
      landNow();
      return kLanded;
    }
    Member& member = members_[at];  // if no worker runs, the slowest one may land
    now_ = clock(member, at);
    if (member.done < plan_.iterations[at]) {
      ++member.done;
      return next;
    }
    arrive(member);
  }
}

int ArrivalOrder::nextRunning() const {
  int next = -1;
  std::pair<double, bool> earliest;
  for (std::size_t w = 0; w < members_.size(); ++w) {
    const Member& member = members_[w];
    if (!member.running) continue;
    const std::pair event(clock(member, w), member.done < plan_.iterations[w]);  // arrivals first
    if (next >= 0 && event >= earliest) continue;
    next = static_cast<int>(w);
    earliest = event;
  }
  return next;
}

double ArrivalOrder::clock(const Member& member, std::size_t worker) const {
  return member.begun + static_cast<double>(member.done) / plan_.speeds[worker];
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

void ArrivalOrder::landNow() {
  for (std::size_t w = 0; w < members_.size(); ++w) {
    Member& member = members_[w];
    arrivals_[w] = {.arrives = std::exchange(member.pending, false),
                    .goesOn = !member.running && mayGoOn(member)};
    if (!arrivals_[w].goesOn) continue;
    member.running = true;
    member.begun = now_;
    member.done = 0;
  }
  pending_ = 0;
}

}  // namespace muster
