#include "muster/parallel/runtime/stall_watch.h"

#include <algorithm>
#include <map>

#include "muster/core/base/log.h"
#include "muster/parallel/runtime/task_thread.h"

namespace muster {

using namespace std::chrono_literals;

StallWatch::StallWatch(std::vector<Subject> subjects, std::chrono::milliseconds patience)
    : subjects_(std::move(subjects)),
      patience_(patience),
      thread_(startThread("the stall watch", [this](const std::stop_token& stop) { loop(stop); })) {}

void StallWatch::setWatched(std::string_view call) {
  const Lock lock(mutex_);
  call_ = call;
  changed_.notify_all();
}

void StallWatch::loop(const std::stop_token& stop) {
  Lock lock(mutex_);
  auto lastReport = std::chrono::steady_clock::time_point::min();
  const auto on = [&]() MUSTER_REQUIRES(mutex_) { return !call_.empty(); };
  const auto off = [&]() MUSTER_REQUIRES(mutex_) { return call_.empty(); };
  while (changed_.wait(lock.native(), stop, on)) {
    if (changed_.wait_for(lock.native(), stop, patience_ / 4, off)) continue;
    const auto now = std::chrono::steady_clock::now();
    if (stop.stop_requested() || now - patience_ < lastReport || !stalled()) continue;
    lastReport = now;
    const auto call = call_;
    lock.unlock();  // so that a slow log does not delay setWatched
    try {
      logWarning("{} makes no progress: {}", call, describe());
    } catch (...) {  // a lost log line is better than a dead process
    }
    lock.lock();
  }
}

bool StallWatch::stalled() const {
  const auto longAtIt = [&](const Subject& s) { return s.activity->elapsed() >= patience_; };
  const auto idle = [](const Subject& s) { return s.activity->kind() == Activity::Kind::Idle; };
  if (std::ranges::any_of(subjects_, [&](const auto& s) { return s.activity->busy() && longAtIt(s); }))
    return true;
  return std::ranges::all_of(subjects_, [&](const auto& s) { return idle(s) || longAtIt(s); }) &&
         !std::ranges::all_of(subjects_, idle);
}

std::string StallWatch::describe() const {
  constexpr std::size_t kMostNamed = 10;  // with more threads, only the longest of each kind of activity
  struct Named {
    const Subject* longest = nullptr;
    std::size_t others = 0;
  };
  std::vector<Named> named;
  std::map<Activity::Kind, std::size_t> ofKind;
  for (const Subject& subject : subjects_) {
    const auto kind = subject.activity->kind();
    if (kind == Activity::Kind::Idle) continue;
    const auto [known, added] = ofKind.emplace(kind, named.size());
    if (added || subjects_.size() <= kMostNamed) {
      named.push_back({&subject});
      continue;
    }
    auto& [longest, others] = named[known->second];
    ++others;
    if (subject.activity->elapsed() > longest->activity->elapsed()) longest = &subject;
  }
  std::string text;
  for (const auto& [subject, others] : named)
    if (const auto what = subject->activity->describe(); !what.empty()) {
      text += fmt::format("{}{} is {}", text.empty() ? "" : "; ", subject->name, what);
      if (others > 0) text += fmt::format(", as {} {}", others, others == 1 ? "other is" : "others are");
    }
  return text;
}

}  // namespace muster
