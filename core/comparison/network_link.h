#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// A network link: each worker sends and receives at `bytesPerSecond` at the same time.
struct NetworkLink {
  double bytesPerSecond = 0;
  double latencySeconds = 0;  ///< per message from a worker to its neighbour
};

/// Reads `10Gbit,50us`: a bandwidth a second in bit, kbit, Mbit, Gbit, Tbit, B, kB, MB, GB or TB (factors of
/// 1000), and a latency in ns, us (or µs), ms or s.
/// @throws InvalidArgument naming the part that cannot be read.
NetworkLink parseNetworkLink(std::string_view text);

/// Seconds of one merge in a ring of `workers`, each contributing `bytes`; 0 for one worker.
///
/// The ring all-reduce joins parameters and gradients: 2 (W - 1) messages in sequence, of bytes / W each.
/// Messages of shared gradients cannot be summed on their way, so the ring passes each of them to all
/// workers: W - 1 messages of `bytes`. (Resynchronisations can be summed; see `projectOnLink`.) Source:
/// Patarasuk and Yuan 2009, "Bandwidth optimal all-reduce algorithms for clusters of workstations".
double mergeSeconds(const NetworkLink& link, bool summed, std::int64_t workers, double bytes);

/// Measured costs of one worker of an arm.
struct WorkerCost {
  double computeSeconds = 0;
  double rounds = 0;                  ///< merges
  double bytes = 0;                   ///< contributed to all rounds together
  double resynchronisations = 0;      ///< how many of the rounds resynchronised shared gradients
  double resynchronisationBytes = 0;  ///< how many of the bytes they took
};

/// How long a training would take whose workers a link connects.
struct LinkProjection {
  std::int64_t workers = 0;
  double seconds = 0;         ///< computing, then merging
  double computingShare = 1;  ///< of `seconds`, from 0 to 1
};

/// Projects a training in which each of `workers` computes and sends as much as one worker did in the run.
/// @param summed  as in RunRecord. A calculation, not a measurement; see `linkAssumptions`.
LinkProjection projectOnLink(const NetworkLink& link, bool summed, const WorkerCost& cost,
                             std::int64_t workers);

/// The numbers of workers that arms are projected for: 2, 4, 8, ... 1024 workers, and their own.
/// @param own  [arm]
std::vector<std::int64_t> projectedWorkers(std::span<const std::int64_t> own);

/// The formula and its assumptions for the report, a sentence each.
std::vector<std::string> linkAssumptions();

/// For example `10 Gbit/s, 50 us`.
std::string linkText(const NetworkLink& link);

}  // namespace muster
