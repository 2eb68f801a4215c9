#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "examples/compare_convergence/grid.h"

namespace convergence {

/// A network link: each worker sends and receives at `bytesPerSecond` at the same time.
struct Link {
  double bytesPerSecond = 0;
  double latencySeconds = 0;  ///< of one message from a worker to its neighbour
};

/// Reads `10Gbit,50us`: a bandwidth a second in bit, kbit, Mbit, Gbit, Tbit, B, kB, MB, GB or TB (factors of
/// 1000), and a latency in ns, us (or µs), ms or s.
/// @throws InvalidArgument naming the part that cannot be read.
Link parseLink(std::string_view text);

/// Seconds of one exchange in a ring of `workers`, where each contributes `bytes`. Nothing for one worker.
///
/// Parameters and gradients are reduced by the ring all-reduce: 2 (W - 1) messages one after the other, of
/// bytes / W each. Messages of shared gradients cannot be added up on their way, so a ring hands each of them
/// to all workers: W - 1 messages of `bytes`. (Their resynchronisations can: `project` reduces those.)
/// Source: Patarasuk and Yuan 2009, "Bandwidth optimal all-reduce algorithms for clusters of workstations".
double exchangeSeconds(const Link& link, Mode mode, std::int64_t workers, double bytes);

/// What a worker of an arm did, as it was measured.
struct WorkerCost {
  double computeSeconds = 0;
  double exchanges = 0;               ///< rounds
  double bytes = 0;                   ///< that it contributed to all of them together
  double resynchronisations = 0;      ///< of the rounds, with shared gradients
  double resynchronisationBytes = 0;  ///< of the bytes
};

struct Projection {
  std::int64_t workers = 0;
  double seconds = 0;  ///< computing and exchanging, one after the other
  double computingShare = 1;
};

/// A training in which each of `workers` computes and exchanges what one worker did in the run.
Projection project(const Link& link, Mode mode, const WorkerCost& cost, std::int64_t workers);

/// The numbers of workers that a grid is projected for: 2, 4, 8, ... 1024 workers, and those of its own arms.
std::vector<std::int64_t> projectedWorkers(const Grid& grid);

/// The formula and what is taken for granted, for the report, a sentence each.
std::vector<std::string> linkAssumptions();

/// As in `10 Gbit/s, 50 us`.
std::string describe(const Link& link);

}  // namespace convergence
