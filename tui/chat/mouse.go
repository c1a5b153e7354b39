package chat

import tea "charm.land/bubbletea/v2"

// mouse gives the mouse to what is under it.
func (c *Chat) mouse(msg tea.MouseMsg) tea.Cmd {
	l, m := c.layout, msg.Mouse()
	_, click := msg.(tea.MouseClickMsg)
	_, wheel := msg.(tea.MouseWheelMsg)
	top := l.transcript + l.ask + l.notes // of the status
	if l.overlay > 0 {
		y := m.Y - (top - l.overlay)
		inside := y >= 0 && y < l.overlay && m.X >= l.x && m.X < l.x+l.w
		switch {
		case c.picker != nil && inside:
			return c.picker.mouse(msg, y)
		case c.picker != nil:
			if click {
				c.closePicker(c.picker)
			}
			return nil
		case inside && click:
			if i := c.completion.top + y - 1; y >= 1 && y < l.overlay-1 && i < len(c.completion.shown) {
				c.completion.cursor = i
				c.acceptCompletion()
			}
			return nil
		case inside && wheel:
			step := 1
			if m.Button == tea.MouseWheelUp {
				step = -1
			}
			c.completion.cursor = max(min(c.completion.cursor+step, len(c.completion.shown)-1), 0)
			return nil
		}
	}
	switch {
	case m.Y < l.transcript:
		if click && c.focus != focusTranscript {
			c.toTranscript()
		}
		return c.t.Update(msg)
	case m.Y < l.transcript+l.ask:
		return c.askMouse(msg, m.Y-l.transcript)
	case m.Y > top && click && !c.o.ReadOnly && !c.s.Phase.Final():
		c.toEditor()
		c.ed.click(m.X, m.Y-top-1)
	case wheel:
		return c.t.Update(msg)
	}
	return nil
}

// askMouse moves to the question, and among its options. It never answers: that takes a
// second look.
func (c *Chat) askMouse(msg tea.MouseMsg, y int) tea.Cmd {
	a := c.asked()
	if a == nil || c.o.ReadOnly {
		return nil
	}
	switch m := msg.(type) {
	case tea.MouseClickMsg:
		c.focus = focusQuestion
		c.t.SetFocused(false)
		if i := a.top + y - a.first; a.ed == nil && y >= a.first && y < a.first+a.rows && i < len(a.shown) {
			a.cursor = i
		}
	case tea.MouseWheelMsg:
		switch m.Button {
		case tea.MouseWheelUp:
			a.scroll = max(a.scroll-1, 0)
		case tea.MouseWheelDown:
			a.scroll++
		default:
		}
	}
	return nil
}
