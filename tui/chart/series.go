package chart

import (
	"math"
	"time"
)

// fine is how many seconds a Series keeps as they were.
const fine = 3600

// coarse is how many buckets a Series keeps of its whole life. When they are full two
// become one, so they always reach back to the first value.
const coarse = 2048

// hold is how long a value stands when no newer one came: figures come once a second, and
// not on the dot.
const hold = 3 * time.Second

// Series is the history of one figure that is measured about once a second. Its size is
// bounded however long it lives. The zero value is empty and ready.
type Series struct {
	ring  []sample // by second, oldest at head once it is full
	head  int
	all   []float64 // buckets of step seconds since first, the largest of each
	step  int64
	first int64 // seconds
	last  sample
	peak  float64
}

type sample struct {
	at int64 // seconds since 1970
	v  float64
}

// Add takes a value. One that is older than the newest, or isn't a figure, is left out:
// clocks go back, and a drawing can't.
func (s *Series) Add(t time.Time, v float64) {
	at := t.Unix()
	if !known(v) || len(s.ring) > 0 && at < s.last.at {
		return
	}
	if len(s.ring) == 0 {
		s.first, s.step, s.peak = at, 1, v
	}
	s.peak = max(s.peak, v)
	s.addFine(at, v)
	s.addCoarse(at, v)
	s.last = sample{at, v}
}

func (s *Series) addFine(at int64, v float64) {
	switch {
	case len(s.ring) > 0 && s.last.at == at:
		newest := &s.ring[(s.head+len(s.ring)-1)%len(s.ring)]
		newest.v = max(newest.v, v)
	case len(s.ring) < fine:
		s.ring = append(s.ring, sample{at, v})
	default:
		s.ring[s.head] = sample{at, v}
		s.head = (s.head + 1) % fine
	}
}

func (s *Series) addCoarse(at int64, v float64) {
	for (at-s.first)/s.step >= coarse {
		half := (len(s.all) + 1) / 2
		for i := range half {
			s.all[i] = s.all[2*i]
			if 2*i+1 < len(s.all) {
				s.all[i] = larger(s.all[i], s.all[2*i+1])
			}
		}
		s.all = s.all[:half]
		s.step *= 2
	}
	i := int((at - s.first) / s.step)
	for len(s.all) <= i {
		s.all = append(s.all, Missing)
	}
	s.all[i] = larger(s.all[i], v)
}

// Len reports whether there is anything: how many of the newest seconds are kept.
func (s *Series) Len() int { return len(s.ring) }

// Last is the newest value and its time, missing when there is none.
func (s *Series) Last() (float64, time.Time) {
	if len(s.ring) == 0 {
		return Missing, time.Time{}
	}
	return s.last.v, time.Unix(s.last.at, 0)
}

// Peak is the largest value of all, missing when there is none.
func (s *Series) Peak() float64 {
	if len(s.ring) == 0 {
		return Missing
	}
	return s.peak
}

// Life is the time from the first value to end, at least a second when there is a value.
func (s *Series) Life(end time.Time) time.Duration {
	if len(s.ring) == 0 {
		return 0
	}
	return max(time.Duration(end.Unix()-s.first)*time.Second, time.Second)
}

// Window gives n values for the span that ends at end, the largest of each share; seconds
// without a value are missing. A span longer than the seconds that are kept is drawn from
// the coarser history.
func (s *Series) Window(end time.Time, span time.Duration, n int) []float64 {
	if n <= 0 || span <= 0 {
		return nil
	}
	out := make([]float64, n)
	for i := range out {
		out[i] = Missing
	}
	if len(s.ring) == 0 {
		return out
	}
	from := end.Add(-span)
	// A column begins at its time exactly; what floats get wrong by less isn't another one.
	const tiny = 1e-9
	column := func(t time.Time) float64 { return float64(t.Sub(from)) / float64(span) * float64(n) }
	put := func(at, until time.Time, v float64) {
		first := max(int(math.Floor(column(at)+tiny)), 0)
		last := min(max(int(math.Ceil(column(until)-tiny))-1, first), n-1)
		for i := first; i <= last; i++ {
			out[i] = larger(out[i], v)
		}
	}
	if oldest := s.ring[s.head%len(s.ring)].at; from.Unix() < oldest && oldest > s.first {
		for i, v := range s.all {
			if known(v) {
				at := time.Unix(s.first+int64(i)*s.step, 0)
				if until := at.Add(time.Duration(s.step) * time.Second); until.After(from) && !at.After(end) {
					put(at, until, v)
				}
			}
		}
		return out
	}
	for i := range s.ring {
		x := s.ring[(s.head+i)%len(s.ring)]
		at := time.Unix(x.at, 0)
		// A value stands until the next, but not long.
		until := end.Add(time.Second)
		if i+1 < len(s.ring) {
			until = time.Unix(s.ring[(s.head+i+1)%len(s.ring)].at, 0)
		}
		if stands := at.Add(hold); until.After(stands) {
			until = stands
		}
		if until.After(from) && !at.After(end) {
			put(at, until, x.v)
		}
	}
	return out
}
