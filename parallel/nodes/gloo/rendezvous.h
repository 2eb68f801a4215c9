#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "muster/parallel/nodes/elastic/node_store.h"

namespace muster {

/// Finds the nodes of a training in a shared store. Each node writes a small text with a random number, again
/// and again; node 0 writes a second text with the numbers of all. The training begins when every node has
/// found its own number there, so texts of earlier runs mislead no node. No node listens for connections
/// meanwhile. The destructor removes this node's texts.
class Rendezvous {
 public:
  /// @param prefix  of the texts' names, since several trainings may share a store.
  Rendezvous(NodeStore& store, std::string prefix, int node, int nodes);
  ~Rendezvous();
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  /// Waits until all nodes have joined.
  /// @return  a random word that only these nodes know.
  /// @throws NodeFailure naming the nodes that have not joined in this time, and what in their texts does not
  ///         fit; after a second, if another process that is alive counts other nodes than this one.
  const std::string& awaitAll(std::chrono::milliseconds patience);

 private:
  using Clock = std::chrono::steady_clock;
  struct Card {  // the text of a node
    std::string number, session;
    int nodes = 0;
    bool otherVersion = false;
  };
  struct Session {
    std::string name;
    bool complete = false;
    std::vector<std::string> numbers;  // [node]
  };

  static constexpr const char* kCard = "node-";
  std::string cardName(int node) const { return prefix_ + kCard + std::to_string(node); }
  std::string sessionName() const { return prefix_ + "session"; }
  void writeCard();
  static Card parse(const std::string& text);
  Card readCard(int node) const;
  void writeSession() const;
  Session readSession() const;
  bool convene();
  bool join();
  void beat();
  std::string unlike(const Card& card) const;
  void requireOwnCard();
  std::string absent() const;

  NodeStore& store_;
  const std::string prefix_;
  const int node_, nodes_;
  Card card_;
  Session session_;
  std::int64_t beats_ = 0;
  Clock::time_point lastBeat_, unlikeSince_;
  std::map<std::string, std::string> texts_;  // [name] of cards that do not fit
  std::string unlike_;                        // what one of those says that is alive
};

}  // namespace muster
