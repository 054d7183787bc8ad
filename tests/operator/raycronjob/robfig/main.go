// Prints the ticks of 2026 that robfig/cron v3 makes of each schedule in each time zone, as JSON: the count, a hash
// of all, and those within two days of a change of clocks.
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/robfig/cron/v3"
)

type ticks struct {
	Count int      `json:"count"`
	Hash  string   `json:"sha256"`
	Near  []string `json:"nearChanges"`
}

func changes(zone *time.Location, t time.Time) bool {
	_, before := t.Add(-24 * time.Hour).In(zone).Zone()
	_, after := t.Add(24 * time.Hour).In(zone).Zone()
	return before != after
}

func main() {
	zones := []string{"UTC", "America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Asia/Kolkata", "Africa/Cairo", "America/Santiago"}
	schedules := []string{"30 2 * * *", "30 1 * * *", "0 0 * * *", "*/20 * * 3,4,9-11 *", "0 2 * * *", "0 0 1 * *", "15 3 * * 0", "0 0 13 * 5", "0 0 13 * *",
		"10-50/20 22-23,0-3 * * *", "5/15 1 * mar,oct,nov sun", "0 12 */10 * 1-5", "59 23 31 * ?", "* 2 * 4,9,10 *", "@monthly", "@weekly", "@hourly"}
	result := map[string]map[string]ticks{}
	for _, name := range zones {
		zone, err := time.LoadLocation(name)
		if err != nil {
			panic(err)
		}
		result[name] = map[string]ticks{}
		for _, text := range schedules {
			schedule, err := cron.ParseStandard("TZ=" + name + " " + text)
			if err != nil {
				panic(err)
			}
			hash, found := sha256.New(), ticks{}
			t := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			for {
				t = schedule.Next(t)
				if t.Year() > 2026 {
					break
				}
				found.Count++
				stamp := t.UTC().Format(time.RFC3339)
				fmt.Fprintln(hash, stamp)
				if changes(zone, t) && found.Count < 100000 && len(text) > 6 && text[0] != '*' && text != "@hourly" && text[:4] != "10-5" {
					found.Near = append(found.Near, stamp)
				}
			}
			found.Hash = hex.EncodeToString(hash.Sum(nil))
			result[name][text] = found
		}
	}
	parse := map[string]string{}
	for _, text := range []string{"", " ", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * 32 * *", "* * * 13 *", "* * * * 7", "*/0 * * * *", "5-1 * * * *",
		"1-2-3 * * * *", "1/2/3 * * * *", "? ? ? ? ?", "+5 * * * *", "-5 * * * *", "a * * * *", "* * * JAN MON", "* * * january *", "1,,2 * * * *", "*-5 * * * *", "*/99 * * * *", "5/99 * * * *",
		"@every 1h", "@every 1h30m", "@every 0", "@every -1h", "@every 1.5s", "@every 1", "@every", "@every  1h", "@daily ", "@DAILY", "@reboot", "1-5/2 * * * *", "0 0 29 2 *", "0 0 L * *", "٣ * * * *",
		"@every 1h1h", "@every 300ms", "@every .5h", "@every 1.h", "* * * * 1#2", "0x5 * * * *", "1_0 * * * *", "1- * * * *", "/5 * * * *", "*/ * * * *"} {
		schedule, err := cron.ParseStandard(text)
		if err != nil {
			parse[text] = ""
			continue
		}
		parse[text] = schedule.Next(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)).UTC().Format(time.RFC3339)
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(map[string]any{"year2026": result, "parsed": parse}); err != nil {
		panic(err)
	}
}
