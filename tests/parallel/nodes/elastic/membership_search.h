#pragma once

#include <cstddef>
#include <unordered_map>
#include <unordered_set>

#include "tests/parallel/nodes/elastic/membership_world.h"

namespace muster::test {

/// Tries the schedules of a world. Each one ends fairly, without further faults, so that it shows whether the
/// processes make progress.
class Search {
 public:
  /// Tries all moves up to this depth, visiting every state once.
  /// @param faults  at most so many in a schedule.
  void all(const World& world, int depth, int faults) {
    if (path_.empty()) origin_.emplace(world);
    const auto key = world.hash() * 31 + static_cast<std::uint64_t>(faults);
    const auto [found, isNew] = visited_.try_emplace(key, depth);
    if (!isNew && found->second >= depth) return;
    found->second = depth;
    if (depth == 0) return end(world);
    for (const Move& move : world.moves(faults > 0)) {
      World next = world;
      path_.push_back(move);
      if (tried(next, move)) all(next, depth - 1, faults - (World::isFault(move) ? 1 : 0));
      path_.pop_back();
      if (!violation_.empty()) return;
    }
  }

  /// A random schedule with some faults.
  void random(World world, std::mt19937& random, int faults) {
    const auto begin = path_.size();
    origin_.emplace(world);
    for (int step = 0; !world.ended() && step < 20'000 && violation_.empty(); ++step) {
      auto moves = world.moves(false);
      if (faults > 0 && random() % 80 == 0) {
        moves = world.moves(true);
        std::erase_if(moves, [](const Move& move) { return !World::isFault(move); });
      } else if (random() % 60 != 0) {
        std::erase_if(moves, [&](const Move& move) {
          return moves.size() > 1 && (move.kind == Move::Kind::Wake || move.kind == Move::Kind::Late);
        });
      }
      if (moves.empty()) continue;
      const Move move = moves[random() % moves.size()];
      faults -= World::isFault(move) ? 1 : 0;
      path_.push_back(move);
      if (!tried(world, move)) break;
    }
    path_.resize(begin);
  }

  std::size_t states() const { return visited_.size(); }
  std::size_t schedules() const { return ends_; }
  /// The first promise that was broken, and the schedule; empty if none was.
  const std::string& violation() const { return violation_; }

 private:
  bool tried(World& world, const Move& move) {
    try {
      world.apply(move);
      return true;
    } catch (const World::Violation& violation) {
      violation_ = violation.what;
      World again = *origin_;
      again.trace = &violation_;
      try {
        for (const Move& one : path_) again.apply(one);
      } catch (const World::Violation&) {
      }
      violation_ += "\n" + world.describe();
      return false;
    }
  }

  /// Ends fairly: a stopped process continues at once, after others have taken it for dead, or after they
  /// have ended.
  void end(const World& start) {
    const auto begin = path_.size();
    for (const int sleep : {0, World::kTicks * 7 / 10, 6 * World::kTicks}) {
      World world = start;
      ++ends_;
      while (violation_.empty()) {
        const auto move = world.fairMove(sleep);
        if (!move) break;
        if (move->kind == Move::Kind::Tick &&
            !ended_.insert(world.hash() * 31 + static_cast<std::uint64_t>(sleep)).second)
          break;  // it has ended well from here before
        path_.push_back(*move);
        if (!tried(world, *move)) break;
      }
      path_.resize(begin);
    }
  }

  std::unordered_map<std::uint64_t, int> visited_;
  std::unordered_set<std::uint64_t> ended_;
  std::optional<World> origin_;
  std::vector<Move> path_;  // from there
  std::string violation_;
  std::size_t ends_ = 0;
};

}  // namespace muster::test
