import { render } from 'preact';
import './style.css';
import { App } from './app.tsx';
import { connect } from './client.ts';

render(<App />, document.getElementById('page') as HTMLElement);
void connect();
