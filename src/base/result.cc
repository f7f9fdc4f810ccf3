#include "base/result.h"

namespace holdfast {

const char* code_name(Code code) {
  switch (code) {
    case Code::NotFound: return "not_found";
    case Code::Conflict: return "conflict";
    case Code::BadInput: return "bad_input";
    case Code::Unavailable: return "unavailable";
    case Code::Denied: return "denied";
    case Code::Corrupt: return "corrupt";
    case Code::Internal: return "internal";
  }
  return "internal";
}

}  // namespace holdfast
