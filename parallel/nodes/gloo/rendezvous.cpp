#include "muster/parallel/nodes/gloo/rendezvous.h"

#include <sstream>
#include <thread>

#include "muster/parallel/nodes/gloo/pair_connection.h"
#include "muster/parallel/nodes/node_transport.h"

namespace muster {
namespace {

using namespace std::chrono_literals;

const std::string kFamily = "muster-rendezvous-", kMagic = kFamily + "2";

constexpr auto kBeat = 200ms;
/// A node that leaves because of another one's text leaves so late that the other one has seen its text, too.
constexpr auto kGrace = 1s;

}  // namespace

Rendezvous::Rendezvous(NodeStore& store, std::string prefix, int node, int nodes)
    : store_(store), prefix_(std::move(prefix)), node_(node), nodes_(nodes) {}

Rendezvous::~Rendezvous() {
  try {
    if (card_.number.empty() || readCard(node_).number != card_.number) return;  // not this process's
    store_.erase(cardName(node_));
    for (int n = 0; n < nodes_; ++n) store_.erase(addressName(prefix_, node_, n));
    if (node_ == 0) store_.erase(sessionName());
  } catch (const std::exception&) {  // texts that are left mislead no node
  }
}

const std::string& Rendezvous::awaitAll(std::chrono::milliseconds patience) {
  card_ = {.number = drawnNumber(), .session = "-", .nodes = nodes_};
  const auto end = Clock::now() + patience;
  beat();
  while (!(node_ == 0 ? convene() : join())) {
    requireOwnCard();
    if (Clock::now() - lastBeat_ > kBeat) beat();
    if (Clock::now() > end)
      throw NodeFailure(fmt::format("not all nodes have joined {} in {} s: {}", store_.describe(),
                                    std::chrono::duration<double>(patience).count(), absent()));
    std::this_thread::sleep_for(10ms);
  }
  return session_.name;
}

void Rendezvous::requireOwnCard() {
  const auto number = readCard(node_).number;
  if (number.empty()) writeCard();  // another process has removed it
  if (!number.empty() && number != card_.number)
    throw NodeFailure(fmt::format("another process has joined {} as node {}", store_.describe(), node_));
}

/// Shows the others that this process is alive, and looks for living processes that do not fit: the text of a
/// killed run does not change.
void Rendezvous::beat() {
  lastBeat_ = Clock::now();
  ++beats_;
  writeCard();
  const auto prefix = prefix_ + kCard;
  for (const auto& name : store_.names(prefix)) {
    const auto text = store_.get(name);
    const auto why = unlike(parse(text));
    if (why.empty()) continue;
    const auto [before, isNew] = texts_.try_emplace(name, text);
    if (isNew || before->second == text || !unlike_.empty()) continue;
    unlikeSince_ = lastBeat_;
    unlike_ = fmt::format("node {} {}", name.substr(prefix.size()), why);
  }
  if (!unlike_.empty() && lastBeat_ - unlikeSince_ > kGrace)
    throw NodeFailure(fmt::format("the nodes that join {} do not fit: {}", store_.describe(), unlike_));
}

/// What does not fit in the card of a node; "": nothing.
std::string Rendezvous::unlike(const Card& card) const {
  if (card.otherVersion) return "runs another version of muster";
  if (card.nodes == 0 || card.nodes == nodes_) return {};
  return fmt::format("counts {} nodes, and this one {}", card.nodes, nodes_);
}

/// Node 0 opens a session with the numbers of all nodes, and a new session if a number changes.
bool Rendezvous::convene() {
  std::vector<std::string> numbers = {card_.number};
  bool agreed = true;
  for (int n = 1; n < nodes_; ++n) {
    const Card card = readCard(n);
    if (card.number.empty()) return false;
    numbers.push_back(card.number);
    agreed = agreed && card.session == session_.name;
  }
  if (numbers != session_.numbers) {
    session_ = {.name = drawnNumber(), .numbers = std::move(numbers)};
    writeSession();
    return nodes_ == 1;
  }
  if (!agreed) return false;
  session_.complete = true;
  writeSession();
  return true;
}

bool Rendezvous::join() {
  const Session session = readSession();
  if (session.numbers.size() != static_cast<std::size_t>(nodes_) ||
      session.numbers[static_cast<std::size_t>(node_)] != card_.number)
    return false;
  session_ = session;
  if (card_.session != session.name) {
    card_.session = session.name;
    writeCard();
  }
  return session.complete;
}

/// As in "node 2 is missing".
std::string Rendezvous::absent() const {
  std::string all;
  for (int n = 0; n < nodes_; ++n) {
    if (n == node_) continue;
    const Card card = readCard(n);
    const bool answers = node_ > 0 || session_.name.empty() || card.session == session_.name;
    if (!card.number.empty() && answers) continue;
    std::string why = unlike(card);
    if (why.empty()) why = card.number.empty() ? "is missing" : "has left a file and does not answer";
    all += fmt::format("{}node {} {}", all.empty() ? "" : "; ", n, why);
  }
  return all.empty() ? "all have files there, and one of these may be left from an earlier run" : all;
}

void Rendezvous::writeCard() {
  store_.put(cardName(node_),
             fmt::format("{} {} {} {} {}\n", kMagic, card_.number, card_.session, nodes_, beats_));
}

/// Without a number if the text is not a card.
Rendezvous::Card Rendezvous::parse(const std::string& text) {
  std::istringstream words(text);
  std::string magic;
  Card card;
  words >> magic >> card.number >> card.session >> card.nodes;
  if (words && magic == kMagic) return card;
  return {.number = {}, .session = {}, .otherVersion = magic != kMagic && magic.starts_with(kFamily)};
}

/// Without a number if there is none of a training of `nodes_` nodes.
Rendezvous::Card Rendezvous::readCard(int node) const {
  Card card = parse(store_.get(cardName(node)));
  if (card.nodes != nodes_) card.number.clear();
  return card;
}

void Rendezvous::writeSession() const {
  std::string text =
      fmt::format("{} {} {}\n", kMagic, session_.name, session_.complete ? "complete" : "open");
  for (const auto& number : session_.numbers) text += number + '\n';
  store_.put(sessionName(), text);
}

Rendezvous::Session Rendezvous::readSession() const {
  std::istringstream text(store_.get(sessionName()));
  std::string magic, state, word;
  Session session;
  text >> magic >> session.name >> state;
  if (!text || magic != kMagic) return {};
  session.complete = state == "complete";
  while (text >> word) session.numbers.push_back(word);
  return session;
}

}  // namespace muster
