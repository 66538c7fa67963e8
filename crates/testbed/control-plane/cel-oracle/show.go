package main

import (
	"encoding/json"
	"fmt"
	"sort"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

func quote(text string) string {
	quoted, err := json.Marshal(text)
	check(err)
	return string(quoted)
}

// Formats the value in a way that the test can reproduce.
func show(value ref.Val) string {
	switch v := value.(type) {
	case nil:
		return "nothing"
	case types.Null:
		return "null"
	case types.Bool, types.Int:
		return fmt.Sprint(v.Value())
	case types.Uint:
		return fmt.Sprintf("%du", uint64(v))
	case types.Double:
		return "double " + string(v.ConvertToType(types.StringType).(types.String))
	case types.String:
		return quote(string(v))
	case types.Bytes:
		return fmt.Sprintf("bytes %x", []byte(v))
	case types.Duration:
		return fmt.Sprintf("duration %dns", v.Duration.Nanoseconds())
	case types.Timestamp:
		return "timestamp " + string(v.ConvertToType(types.StringType).(types.String))
	case *types.Optional:
		if v.HasValue() {
			return "optional " + show(v.GetValue())
		}
		return "none"
	case ref.Type:
		return "type " + v.TypeName()
	case traits.Lister:
		items := []string{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			items = append(items, show(it.Next()))
		}
		return "[" + strings.Join(items, ", ") + "]"
	case traits.Mapper:
		entries := []string{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			// The keys of an object are those of the data, including those that the schema does not declare.
			if value, found := v.Find(key); found && value != nil {
				entries = append(entries, show(key)+": "+show(value))
			}
		}
		sort.Strings(entries)
		return "{" + strings.Join(entries, ", ") + "}"
	}
	return value.Type().TypeName()
}
